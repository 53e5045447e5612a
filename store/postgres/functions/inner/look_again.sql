-- Looks again at what jobs wait for that were enqueued behind others, or whose blockers ended, in transactions that did not
-- see each other.
create or replace function sluice._look_again() returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    noted uuid[];
begin
    if (select true from sluice.look_again limit 1) is null then
        return;
    end if;
    with taken as (
        delete from sluice.look_again a
        where a.ctid = any (array(select n.ctid from sluice.look_again n limit 1000 for update skip locked))
        returning a.job_id
    )
    select array_agg(distinct t.job_id) into noted from taken t;
    perform sluice._unblock(noted, false);
end
$function$;
