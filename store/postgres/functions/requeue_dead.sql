-- operator: Gives dead jobs of a queue a new life, the longest stored first: the next generation, due now, with all
-- counts at 0. The history of the jobs stays. The audit records the reason.
create or replace function sluice.requeue_dead(
    queue   text,
    reason  text,                  -- why; it must not be blank
    batch   integer default 1000,  -- the most jobs, from 1 to 10000
    dry_run boolean default false, -- true: only list the jobs
    actor   text default null      -- who acts, for the audit; null: the role
) returns table (
    id    uuid,
    state text  -- queued, duplicate (another job holds the key) or not allowed; in a dry run dead
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    dead uuid[];
begin
    perform sluice._check_queue('operate', queue);
    perform sluice._check_known_or_dead(queue);
    perform sluice._check_size(batch);
    perform sluice._check_reason(reason);
    perform sluice._check_said('dry_run', dry_run);
    dead := array(
        select d.id from sluice.done d
        where d.queue = requeue_dead.queue and d.outcome = 'dead' and d.requeued_at is null
        order by d.id limit batch);
    if dry_run then
        return query select u, 'dead' from unnest(dead) as u;
        return;
    end if;
    return query select r.id, r.state from sluice._requeue(dead, reason, sluice._actor(actor), null, false) r;
end
$function$;
