-- Returns the jobs of a list that an earlier call of the same act has changed.
create or replace function sluice._acted(act uuid, given uuid[]) returns uuid[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
declare
    before uuid[] := '{}';
    job_id uuid;
begin
    if act is not null then
        for job_id in execute {{acted.sql}} using act loop
            before := before || job_id;
        end loop;
    end if;
    return array(select i from unnest(given) as i where i = any (before) order by i);
end
$function$;
