-- Returns the jobs of a list that an earlier call of the same act has changed. It waits for such a call, and must be
-- volatile, because each statement of a stable function sees the database as of the caller's statement.
create or replace function sluice._acted(act uuid, given uuid[]) returns uuid[]
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    before uuid[] := '{}';
    job_id uuid;
begin
    if act is not null then
        execute {{act_lock.sql}} using act;
        for job_id in execute {{acted.sql}} using act loop
            before := before || job_id;
        end loop;
    end if;
    return array(select i from unnest(given) as i where i = any (before) order by i);
end
$function$;
