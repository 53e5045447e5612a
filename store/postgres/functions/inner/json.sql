-- Stored bytes as JSON, character for character. What is no JSON, which only plain SQL can have stored, is null: it must
-- not keep others from being claimed.
create or replace function sluice._json(stored bytea) returns json
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    return convert_from(stored, 'UTF8')::json;
exception when others then
    return null;
end
$function$;
