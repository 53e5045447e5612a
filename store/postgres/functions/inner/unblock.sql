-- Looks at the jobs that wait for jobs which may have ended, and lets a job go when it waits for nothing more. If the
-- function fails, the next recheck repeats its work; the ended jobs stay ended.
create or replace function sluice._unblock(given uuid[], note boolean default true) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    ended   uuid[] := array(select distinct g from unnest(given) as g where g is not null order by g);
    next    uuid[] := '{}';
    left_behind uuid[] := '{}';
    after   uuid := '00000000-0000-0000-0000-000000000000';
    failed  uuid[];
    why     text[];
    looked  integer;
    a_lock  boolean;
    job     record;
    job_id  uuid;
    queue   text;
    behind  uuid;
    because uuid;
    outcome text;
    changed boolean;
    locked  boolean;
    unread  boolean;
begin
    -- An open transaction that enqueues behind an ended job, or ends another blocker, does not see this. So the next recheck looks again.
    if note and ended <> '{}' then
        perform sluice._recheck();
        insert into sluice.recheck (job_id) select e from unnest(ended) as e;
    end if;
    for round in 1..{{unblock rounds}} loop
        exit when ended = '{}';
        failed := '{}';
        why := '{}';
        looked := 0;
        a_lock := false;
        for job_id, queue, behind, because, outcome, changed, locked, unread in execute {{unblock.sql}}
            using ended, '{}'::uuid[], after, {{unblock slice}}, {{edge slice}}
        loop
            looked := looked + 1;
            a_lock := a_lock or locked;
            if locked then
                continue;
            elsif because is not null then
                failed := failed || job_id;
                why := why || case outcome
                    when '' then format('job %s, which it was to run after, is gone from the history', because)
                    else format('job %s, which it was to run after, is %s', because, outcome) end;
            elsif behind is null then
                perform sluice._notify(queue);
            elsif unread or not behind = any (ended) then
                next := next || behind;
                left_behind := left_behind || behind;
            end if;
        end loop;
        if a_lock then
            next := next || ended;
        end if;
        if failed <> '{}' then
            for job in select e.* from sluice._cancel_queued(failed, why,
                array_fill('sluice'::text, array[cardinality(failed)])) e
            loop
                if job.state = 'let go' then
                    perform sluice._notify(job.queue);
                elsif job.awaited then
                    next := next || job.id;
                end if;
            end loop;
        end if;
        if looked = {{unblock slice}} then
            after := job_id;
        else
            ended := array(select distinct n from unnest(next) as n order by n);
            next := '{}';
            after := '00000000-0000-0000-0000-000000000000';
        end if;
    end loop;
    -- A transaction that ends a new blocker meanwhile does not see yet that a job waits for it. Jobs that others have locked in
    -- each round were not looked at. The next recheck looks at both.
    left_behind := left_behind || ended;
    if left_behind <> '{}' then
        insert into sluice.recheck (job_id) select distinct b from unnest(left_behind) as b;
    end if;
exception when unique_violation or deadlock_detected or lock_not_available or serialization_failure then
    insert into sluice.recheck (job_id) select distinct g from unnest(given) as g where g is not null; -- of which nothing was done
end
$function$;
