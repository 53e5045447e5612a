-- Counts jobs that made a move, for the statistics, in a row for each queue and tenant. Upkeep adds the rows up.
create or replace function sluice._count(of_event text, queues text[], tenants text[], waits bigint[] default null) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
begin
    insert into sluice.stat_call (queue, tenant, event, jobs, waits)
    select g.queue, g.tenant, of_event, count(*), case when waits is not null then array_agg(g.wait) end
    from unnest(queues, tenants, waits) as g(queue, tenant, wait)
    group by g.queue, g.tenant;
end
$function$;
