-- Counts jobs that this transaction moved or ended, for the statistics. Timed says that the move ends an attempt; then
-- the function also records how long each job ran, and how long ago it was due. PostgreSQL keeps the plan, which must
-- find jobs by id even if few jobs existed when it was made. The coalesce keeps the plan from the index on finished_at,
-- which would find all jobs that the transaction has ended.
create or replace function sluice._count_moved(of_event text, ids uuid[], timed boolean default false) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $function$
begin
    insert into sluice.stat_call (queue, tenant, event, jobs, runs, totals)
    select m.queue, m.tenant, of_event, count(*),
        case when timed then array_agg(greatest(extract(epoch from clock_timestamp() - greatest(m.claimed_at, m.due_at)) * 1000000, 0)::bigint) end,
        case when timed then array_agg(greatest(extract(epoch from clock_timestamp() - m.due_at) * 1000000, 0)::bigint) end
    from (
        select d.queue, d.tenant, d.claimed_at, d.due_at from sluice.done d where d.id = any (ids) and coalesce(d.finished_at = now(), false)
        union all
        select l.queue, l.tenant, l.claimed_at, l.due_at from sluice.live l where l.id = any (ids)
    ) m
    group by m.queue, m.tenant;
end
$function$;
