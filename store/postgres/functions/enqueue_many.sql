-- producer: Stores many jobs in one statement. A job that breaks a rule fails alone, and the others are stored.
create or replace function sluice.enqueue_many(
    jobs      json,                  -- an array of objects with the names of enqueue; of the durations, the text of an interval
    new_queue boolean default false  -- whether their queues may be ones without settings
) returns table (
    no        integer, -- the job's place in the array, from 1
    id        uuid,
    duplicate boolean,
    replaced  uuid,
    error     text,    -- why it was not stored; null: it was, or is a duplicate
    code      text     -- the SQLSTATE of the error
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    items   json[];
    job     record;
    ids     uuid[] := '{}';
    twins   jsonb := '{}';
    waits   boolean;
    places  integer[];
    n       integer;
    done    boolean[] := '{}';
    names   constant text[] := array['queue', 'payload', 'tenant', 'key', 'key_scope', 'key_window', 'on_duplicate', 'due_at', 'delay', 'priority',
        'expires_at', 'labels', 'max_attempts', 'order_key', 'after', 'after_failure', 'job_id'];
    unknown text;
    progress    boolean;
    seen    text[] := '{}';
begin
    if jobs is null or json_typeof(jobs) <> 'array' then
        perform sluice._invalid('jobs', 'they must be an array of objects');
    end if;
    items := array(select j from json_array_elements(jobs) as j);
    if cardinality(items) > 10000 then
        perform sluice._invalid('jobs', format('%s are more than 10000', cardinality(items)));
    end if;
    perform sluice._lock_orders(items);
    for n in 1..cardinality(items) loop
        done[n] := false;
        ids[n] := sluice._uuid_of(items[n]);
    end loop;
    -- Keys are taken in one order by everybody, so that two calls do not wait for each other.
    places := array(
        select g.n from unnest(items) with ordinality as g(item, n)
        order by case when json_typeof(g.item) = 'object' then (g.item ->> 'queue') end collate "C",
            case when json_typeof(g.item) = 'object' then (g.item ->> 'key') end collate "C", g.n);
    loop
        progress := false;
        foreach n in array places loop
            continue when done[n];
            begin
                if json_typeof(items[n]) <> 'object' then
                    perform sluice._invalid('jobs', 'each must be an object');
                end if;
                select k into unknown from json_object_keys(items[n]) as k where not k = any (names) limit 1;
                if unknown is not null then
                    perform sluice._invalid('jobs', format('%L is no argument of enqueue', left(unknown, 40)));
                end if;
                select j.* into job from sluice._job_of(items[n]) j;
                waits := (cardinality(job.after) > 0 or job.order_key <> '') and exists (
                    select from generate_subscripts(ids, 1) as m
                    where m <> n and not done[m] and (ids[m] = any (job.after) or m < n and job.order_key <> '' and items[m] ->> 'order_key' = job.order_key
                        and items[m] ->> 'queue' = job.queue));
                continue when waits;
                progress := true;
                done[n] := true;
                no := n;
                error := null;
                code := null;
                perform sluice._check_queue('produce', job.queue);
                if not new_queue then
                    perform sluice._check_known(job.queue);
                end if;
                perform sluice._check_job(job.queue, job.payload, job.tenant, job.key, job.key_scope, job.key_window, job.on_duplicate, job.due_at, job.delay,
                    job.priority, job.expires_at, job.labels, job.max_attempts, job.order_key, job.after, job.after_failure, ids[n]);
                job.after := array(select coalesce((twins ->> a::text)::uuid, a) from unnest(job.after) as a);
                perform sluice._note_awaited(array[job.queue], array[job.order_key], array[job.key], array[cardinality(job.after) > 0], job.after, '{}');
                ids[n] := coalesce(ids[n], sluice._new_id());
                select e.id, e.duplicate, e.replaced into id, duplicate, replaced
                from sluice._enqueue(job.queue, job.payload, job.tenant, job.key, job.key_scope, job.key_window, job.on_duplicate, job.due_at, job.delay,
                    job.priority, job.expires_at, job.labels, job.max_attempts, job.order_key, job.after, job.after_failure, ids[n], true) e;
                if id <> ids[n] then
                    twins := twins || jsonb_build_object(ids[n]::text, id);
                end if;
                if not job.queue = any (seen) then
                    seen := seen || job.queue;
                    perform sluice._notify(job.queue);
                end if;
                return next;
            exception when sqlstate 'SL002' or sqlstate 'SL004' or sqlstate 'SL005' or insufficient_privilege or data_exception then
                progress := true;
                done[n] := true;
                no := n;
                id := null; duplicate := null; replaced := null;
                error := sqlerrm;
                code := sqlstate;
                return next;
            end;
        end loop;
        exit when not progress;
    end loop;
    for n in 1..cardinality(items) loop
        continue when done[n];
        no := n;
        id := null; duplicate := null; replaced := null;
        error := 'after: the jobs of the call wait for each other in a circle';
        code := 'SL004';
        return next;
    end loop;
end
$function$;
