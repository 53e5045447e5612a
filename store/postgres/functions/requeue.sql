-- operator: Gives dead, cancelled and uncertain jobs a new life. Each job succeeds or fails on its own. A dead or
-- cancelled job with a run that may be open at its engine waits until the run has ended.
create or replace function sluice.requeue(
    ids    uuid[],
    reason text,              -- why; it must not be blank
    actor  text default null, -- who acts, for the audit; null: the role
    act_id uuid default null, -- an id of your own; with it you can repeat a call after a lost answer
    beside_open_run boolean default false -- let the jobs run beside their own runs that may be open; the audit names those jobs
) returns table (
    id    uuid,
    state text  -- queued, duplicate (another job holds the key), not allowed, or unknown
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    allowed uuid[] := sluice._operable(ids);
begin
    if beside_open_run is null then
        perform sluice._invalid('beside_open_run', 'it must be true or false');
    end if;
    perform sluice._check_reason(reason);
    return query
    select g.i, coalesce(r.state, 'unknown')
    from unnest(ids) with ordinality as g(i, n)
    left join (select r.id, r.state from sluice._requeue(allowed, reason, sluice._actor(actor), act_id, beside_open_run) r) r on r.id = g.i
    order by g.n;
end
$function$;
