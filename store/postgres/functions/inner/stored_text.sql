-- A text as it is stored: at most {{max error bytes}} bytes, cut in the middle, where the least is lost. Of none it is null.
create or replace function sluice._stored_text(given text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    half constant integer := ({{max error bytes}} - 13) / 2;
begin
    if octet_length(given) <= {{max error bytes}} then
        return nullif(given, '');
    end if;
    return sluice._cut(given, half) || E'\n… cut …\n' || reverse(sluice._cut(reverse(given), half));
end
$function$;
