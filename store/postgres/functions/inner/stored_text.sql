-- A text as it is stored: without secrets, and at most {{max error bytes}} bytes, cut in the middle, where the least is lost. Of
-- none it is null. Of a long text no more is looked through than twice what is stored.
create or replace function sluice._stored_text(given text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    half constant integer := ({{max error bytes}} - 13) / 2;
begin
    if given is null or given = '' then
        return null;
    end if;
    if octet_length(given) > 2 * {{max error bytes}} then
        given := sluice._cut(given, {{max error bytes}}) || E'\n… cut …\n' || reverse(sluice._cut(reverse(given), {{max error bytes}}));
    end if;
    given := sluice._scrubbed(given);
    if octet_length(given) <= {{max error bytes}} then
        return given;
    end if;
    return sluice._cut(given, half) || E'\n… cut …\n' || reverse(sluice._cut(reverse(given), half));
end
$function$;
