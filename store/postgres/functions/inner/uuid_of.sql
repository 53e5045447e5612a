-- Returns the id that a job of a batch asks for; null: none, or an invalid id, which is refused later.
create or replace function sluice._uuid_of(job json) returns uuid
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    return (job ->> 'job_id')::uuid;
exception when others then
    return null;
end
$function$;
