-- operator: Ends the holds of jobs. Each job succeeds or fails on its own. A released job waits as if nobody had held
-- it: for its due time, and for its turn in its order.
create or replace function sluice.release_hold(
    ids    uuid[],
    reason text default '',   -- why, for the audit; null: no reason
    actor  text default null, -- who acts, for the audit; null: the role
    act_id uuid default null  -- an id of your own; with it you can repeat a call after a lost answer
) returns table (
    id    uuid,
    state text  -- queued, not allowed (nobody holds it), or unknown
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    allowed uuid[] := sluice._operable(ids);
    done    uuid[];
    freed   uuid[] := '{}';
    job_id  uuid; of_queue text; old_state text; behind uuid;
begin
    perform sluice._check_name('reason', reason, 1000);
    done := sluice._acted(act_id, allowed);
    for job_id, of_queue, old_state, behind in execute {{hold_release.sql}}
        using array(select i from unnest(allowed) as i where not i = any (done) order by i), sluice._actor(actor), coalesce(reason, ''), act_id
    loop
        done := done || job_id;
        freed := freed || job_id || array_remove(array[behind], null);
    end loop;
    perform sluice._unblock(freed);
    return query
    select g.i, case when g.i = any (done) then 'queued' when g.i = any (allowed) then 'not allowed' else 'unknown' end
    from unnest(ids) with ordinality as g(i, n)
    order by g.n;
end
$function$;
