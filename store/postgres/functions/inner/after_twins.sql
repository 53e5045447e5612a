-- Returns the failure rules of a job, as sluice.job stores them, in which the jobs that hold their keys stand for duplicates. Twins
-- has the id of such a job by the id of its duplicate.
create or replace function sluice._after_twins(after_failure text, twins jsonb) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    id text;
begin
    if twins <> '{}' and after_failure like '% %' then
        for id in select m[1] from regexp_matches(after_failure, ' ([0-9a-f-]{36})=', 'g') as m where twins ? m[1] loop
            after_failure := replace(after_failure, id || '=', (twins ->> id) || '=');
        end loop;
    end if;
    return after_failure;
end
$function$;
