-- Looks again at jobs that were enqueued behind others, or whose blockers ended, in transactions that did not see each
-- other.
create or replace function sluice._recheck() returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    noted uuid[];
begin
    if (select true from sluice.recheck limit 1) is null then
        return;
    end if;
    with taken as (
        delete from sluice.recheck a
        where a.ctid = any (array(select n.ctid from sluice.recheck n limit 1000 for update skip locked))
        returning a.job_id
    )
    select array_agg(distinct t.job_id) into noted from taken t;
    perform sluice._unblock(noted, false);
end
$function$;
