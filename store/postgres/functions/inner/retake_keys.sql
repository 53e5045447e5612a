-- Gives jobs their keys again before they are requeued, and returns the jobs whose key another job holds.
create or replace function sluice._retake_keys(ids uuid[]) returns uuid[]
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    want     record;
    refused  uuid[] := '{}';
    jobs     uuid[] := '{}'; queues text[] := '{}'; keys text[] := '{}';
    job_id   uuid; job_queue text; job_key text; job_state text; life integer; token uuid;
    may      uuid[] := '{}';
    leaves   text[];
    taken    boolean;
    holder   uuid; unfinished_only boolean; state text; behind uuid; stored boolean; a_queue text; a_key text;
begin
    for job_id, job_queue, job_key in execute {{job_keys.sql}} using ids loop
        jobs := jobs || job_id; queues := queues || job_queue; keys := keys || job_key;
    end loop;
    if jobs = '{}' then
        return refused;
    end if;
    select m.leaves into leaves from sluice._move('requeue') m;
    for job_id, job_queue, job_state, life, token in execute {{standing.sql}} using jobs loop
        if job_state = any (leaves) then
            may := may || job_id;
        end if;
    end loop;
    -- The first of the jobs that share a key gets the key. Every act takes keys in the same order, so that two acts do not wait for each other.
    for want in
        select g.q as queue, g.k as key, (array_agg(g.j order by g.n) filter (where g.j = any (may)))[1] as job, array_agg(g.j) as all_jobs
        from unnest(jobs, queues, keys) with ordinality as g(j, q, k, n)
        group by g.q, g.k order by g.q collate "C", g.k collate "C"
    loop
        continue when want.job is null;
        a_key := null;
        execute {{key_take.sql}} into a_queue, a_key
            using array[want.queue], array[want.key], array[want.job], array[null::interval], array[false], false;
        holder := want.job;
        if a_key is null then
            execute {{key_holders.sql}} into a_queue, a_key, holder, unfinished_only, state, behind, stored
                using array[want.queue], array[want.key], array[want.job];
            if holder <> want.job and unfinished_only and state is null then
                execute {{key_pass.sql}} using want.queue, want.key, want.job, null::interval, false;
                holder := want.job;
            end if;
        end if;
        refused := refused || array(select j from unnest(want.all_jobs) as j where j <> holder);
    end loop;
    return refused;
end
$function$;
