-- Returns a text as the store keeps it: without secrets, at most {{max error bytes}} bytes, and null if empty. The
-- function cuts a long text in the middle, which matters least. It searches at most twice the stored length for
-- secrets.
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
