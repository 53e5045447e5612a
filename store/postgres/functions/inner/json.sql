-- Returns stored bytes as JSON, character for character. Bytes that are not JSON become null, so that they do not block
-- the claims of other jobs; only plain SQL can store such bytes.
create or replace function sluice._json(stored bytea) returns json
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    return convert_from(stored, 'UTF8')::json;
exception when others then
    return null;
end
$function$;
