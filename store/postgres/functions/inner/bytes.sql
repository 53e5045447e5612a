-- Returns JSON as the store keeps it, character for character.
create or replace function sluice._bytes(given json) returns bytea
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    return convert_to(given::text, 'UTF8');
end
$function$;
