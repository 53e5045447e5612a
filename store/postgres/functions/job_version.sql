-- operator: Returns the version of a waiting job, for edit. The version changes with each edit and each claim of the
-- job.
create or replace function sluice.job_version(
    job_id uuid
) returns text -- null: the job does not wait, or is not stored
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $function$
begin
    return (select sluice._version(i) from unnest(sluice._operable(array[job_id])) as i);
end
$function$;
