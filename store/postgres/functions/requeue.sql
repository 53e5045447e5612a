-- operator: Gives dead, cancelled and uncertain jobs a new life, each for itself. A dead or cancelled one of which a run may
-- still be open at its engine waits until that has ended.
create or replace function sluice.requeue(
    ids    uuid[],
    reason text,              -- why; it must say something
    actor  text default null, -- who acts, for the audit; null: the role
    act_id uuid default null, -- an id of your own, so that a call whose answer was lost can be sent again
    beside_open_run boolean default false -- let them run beside runs of theirs that may be open; the audit tells for which
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
