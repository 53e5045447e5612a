-- Gives jobs a new life, and returns the outcome for each job.
create or replace function sluice._requeue(given uuid[], reason text, by_whom text, act uuid, beside boolean)
returns table (id uuid, state text)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    ids      uuid[] := array(select distinct g from unnest(given) as g order by g);
    free     uuid[];
    acted    uuid[] := '{}';
    refused  uuid[] := '{}';
    placed   uuid[] := '{}';
    moved    uuid[] := '{}';
    waiting  uuid[] := '{}';
    back     uuid[];
    behind   uuid[] := '{}';
    locked_ids uuid[]; locked_before uuid[];
    leaves   text[];
    job_id   uuid;
    job_queue text;
    job_state text;
    key      text;
    queues   text[] := '{}';
    keys     text[] := '{}';
    blocker  uuid; failed uuid; outcome text; changed boolean; locked boolean; unread boolean;
begin
    acted := sluice._acted(act, ids);
    free := array(select i from unnest(ids) as i where not i = any (acted) order by i);
    for job_id, job_queue, key in execute {{order_keys.sql}} using free loop
        placed := placed || job_id;
        if key <> '' then
            queues := queues || job_queue;
            keys := keys || key;
        end if;
    end loop;
    if keys <> '{}' then
        select array_agg(o.q order by o.q collate "C", o.k collate "C"), array_agg(o.k order by o.q collate "C", o.k collate "C")
        into queues, keys from (select distinct q, k from unnest(queues, keys) as g(q, k)) o;
        execute {{order_lock.sql}} using queues, keys;
    end if;
    refused := sluice._retake_keys(free);
    free := array(select i from unnest(free) as i where not i = any (refused) order by i);
    select m.leaves into leaves from sluice._move('requeue') m;
    if beside then
        for job_id, job_queue, job_state in execute {{orphan_run_beside.sql}} using free, by_whom, reason, act loop
            waiting := '{}';
        end loop;
    else
        for job_id in execute {{orphan_run_open.sql}} using free loop
            waiting := waiting || job_id;
        end loop;
    end if;
    for job_id, job_queue, job_state in execute {{requeue.sql}} using free, leaves, by_whom, reason, act, waiting loop
        moved := moved || job_id;
        perform sluice._notify(job_queue);
    end loop;
    back := array(select i from unnest(free) as i where i = any (placed) and i = any (moved) order by i);
    if back <> '{}' then
        execute {{after_again.sql}} using back;
        loop
            locked_before := locked_ids;
            locked_ids := '{}';
            for job_id, blocker in execute {{order_next.sql}} using back loop
                locked_ids := locked_ids || job_id;
                behind := array_append(behind, blocker);
            end loop;
            exit when locked_ids = locked_before;
        end loop;
        for job_id, job_queue, blocker, failed, outcome, changed, locked, unread in execute {{unblock.sql}}
            using '{}'::uuid[], back, '00000000-0000-0000-0000-000000000000'::uuid, cardinality(back), {{edge slice}}
        loop
            behind := array_append(behind, blocker);
        end loop;
    end if;
    for job_id, job_queue, job_state in execute {{requeue_uncertain.sql}} using free, by_whom, reason, act loop
        moved := moved || job_id;
        perform sluice._notify(job_queue);
    end loop;
    if moved <> '{}' then
        perform sluice._count_moved('requeue', moved);
    end if;
    perform sluice._unblock(behind);
    return query
    select i, case when i = any (moved) or i = any (acted) then 'queued' when i = any (refused) then 'duplicate'
        when (select true from sluice.job j where j.id = i) then 'not allowed' else 'unknown' end
    from unnest(ids) as i;
end
$function$;
