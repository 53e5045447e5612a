-- operator: Holds waiting jobs: no claim takes them until somebody releases them. Each job succeeds or fails on its
-- own.
create or replace function sluice.hold(
    ids    uuid[],
    reason text,              -- why; it must not be blank
    actor  text default null, -- who acts, for the audit; null: the role
    act_id uuid default null  -- an id of your own; with it you can repeat a call after a lost answer
) returns table (
    id    uuid,
    state text  -- held, not allowed (the job does not wait, or somebody holds it), or unknown
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    allowed uuid[] := sluice._operable(ids);
    done    uuid[];
    awaited uuid[] := '{}';
    job_id  uuid; of_queue text; old_state text; of_order uuid;
begin
    perform sluice._check_reason(reason);
    perform sluice._check_name('reason', reason, 1000);
    done := sluice._acted(act_id, allowed);
    for job_id, of_queue, old_state, of_order in execute {{hold.sql}}
        using array(select i from unnest(allowed) as i where not i = any (done) order by i), sluice._actor(actor), reason, act_id
    loop
        done := done || job_id;
        awaited := awaited || array_remove(array[of_order], null);
    end loop;
    perform sluice._unblock(awaited);
    return query
    select g.i, case when g.i = any (done) then 'held' when g.i = any (allowed) then 'not allowed' else 'unknown' end
    from unnest(ids) with ordinality as g(i, n)
    order by g.n;
end
$function$;
