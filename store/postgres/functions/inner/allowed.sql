-- Returns the jobs of a list that lie in queues in which the caller may work. The caller must not learn whether the
-- other jobs exist.
create or replace function sluice._allowed(given uuid[]) returns uuid[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    if sluice._trusted() then
        return given;
    end if;
    return array(
        select j.id from sluice.job j
        where j.id = any (given) and j.queue = any (array(
            select q.queue from (select distinct w.queue from sluice.job w where w.id = any (given)) q where sluice._may('work', q.queue))));
end
$function$;
