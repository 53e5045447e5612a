-- operator: Lists the unfinished jobs and dead letters of a queue, the newest first. The minimums find jobs in trouble,
-- such as those with many failed attempts.
create or replace function sluice.list_jobs(
    queue          text,
    min_attempts   integer default 0,   -- the fewest failed attempts; null: any number
    min_recoveries integer default 0,   -- the fewest lost holders; null: any number
    batch          integer default 1000 -- the most rows, from 1 to 10000
) returns table (
    id         uuid,
    state      text,
    tenant     text,
    due_at     timestamptz,
    attempts   integer,
    releases   integer,
    recoveries integer,
    error      text -- of the last failure; null: none
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    perform sluice._check_queue('operate', queue);
    perform sluice._check_known_or_dead(queue);
    perform sluice._check_size(batch);
    return query
        select l.id, l.state, l.tenant, l.due_at, l.attempts, l.releases, l.recoveries, l.error
        from sluice.live l
        where l.queue = list_jobs.queue and l.attempts >= coalesce(min_attempts, 0) and l.recoveries >= coalesce(min_recoveries, 0)
        union all
        select d.id, d.outcome, d.tenant, d.due_at, d.attempts, d.releases, d.recoveries, d.error
        from sluice.done d
        where d.queue = list_jobs.queue and d.outcome = 'dead' and d.requeued_at is null
          and d.attempts >= coalesce(min_attempts, 0) and d.recoveries >= coalesce(min_recoveries, 0)
        order by 1 desc
        limit batch;
end
$function$;
