-- Returns the first characters of a text, up to a number of bytes.
create or replace function sluice._cut(given text, most integer) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    cut text := left(given, most);
begin
    while octet_length(cut) > most loop
        cut := left(cut, -greatest(1, (octet_length(cut) - most) / 4));
    end loop;
    return cut;
end
$function$;
