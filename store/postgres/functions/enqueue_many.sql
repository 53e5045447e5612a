-- producer: Stores many jobs in one statement. A job that breaks a rule fails alone, and the other jobs are stored. If
-- a queue or a tenant is full, the call stores no job, and each job has the error SL010.
create or replace function sluice.enqueue_many(
    jobs      json,                  -- an array of objects, whose fields are the arguments of enqueue; durations are texts of intervals
    new_queue boolean default false  -- whether the queues may lack settings, if the store allows it
) returns table (
    no        integer, -- the job's place in the array, from 1
    id        uuid,
    duplicate boolean,
    replaced  uuid,
    error     text,    -- why the job was not stored; null: it was stored, or is a duplicate
    code      text     -- the SQLSTATE of the error
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    items   json[];
    job     record;
    row     record;
    ids     uuid[] := '{}';
    orders  text[] := '{}';   -- the order keys of the jobs that are not done yet
    done    boolean[] := '{}';
    plain   integer[] := '{}'; -- jobs without keys, which are stored together
    twins   jsonb := '{}';
    places  integer[];
    n       integer;
    waits   boolean;
    progress boolean;
    paused  text;
    behind  uuid[] := '{}';
    queues  text[];
begin
    perform sluice._check_said('new_queue', new_queue);
    if jobs is null or json_typeof(jobs) <> 'array' then
        perform sluice._invalid('jobs', 'they must be an array of objects');
    end if;
    items := array(select sluice._readable(j) from json_array_elements(jobs) as j);
    if cardinality(items) > 10000 then
        perform sluice._invalid('jobs', format('%s are more than 10000', cardinality(items)));
    end if;
    queues := array(select distinct i ->> 'queue' from unnest(items) as i where json_typeof(i) = 'object');
    begin
        perform sluice._make_rooms(items, queues);
    exception when sqlstate 'SL010' then
        error := sqlerrm;
    end;
    if error is not null then
        return query select g.k, null::uuid, null::boolean, null::uuid, enqueue_many.error, 'SL010' from generate_subscripts(items, 1) as g(k);
        return;
    end if;
    perform sluice._lock_orders(items);
    for n in 1..cardinality(items) loop
        done[n] := false;
        ids[n] := coalesce(sluice._uuid_of(items[n]), sluice._new_id());
        if json_typeof(items[n]) = 'object' then
            orders[n] := (items[n] ->> 'queue') || ' ' || nullif(items[n] ->> 'order_key', '');
        end if;
    end loop;
    perform sluice._note_awaited_batch(items, ids);
    -- Every call takes keys in the same order, so that two calls do not wait for each other.
    places := array(
        select g.n from unnest(items) with ordinality as g(item, n)
        order by case when json_typeof(g.item) = 'object' then (g.item ->> 'queue') end collate "C",
            case when json_typeof(g.item) = 'object' then (g.item ->> 'key') end collate "C", g.n);
    loop
        progress := false;
        foreach n in array places loop
            continue when done[n];
            no := n;
            id := null; duplicate := null; replaced := null; error := null; code := null;
            begin
                job := sluice._job_of(items[n]);
                perform sluice._check_queue('produce', job.queue);
                if new_queue then
                    perform sluice._admit(job.queue);
                else
                    perform sluice._check_known(job.queue);
                end if;
                job.job_id := ids[n];
                perform sluice._check_job({{enqueue values of job}});
                perform sluice._check_seen(ids[n], job.after);
                paused := sluice._enter_batch(job.batch_id, ids[n]);
                job.hold := coalesce(nullif(job.hold, ''), paused);
            exception when sqlstate 'SL002' or sqlstate 'SL003' or sqlstate 'SL004' or sqlstate 'SL005' or sqlstate 'SL008' or insufficient_privilege or data_exception then
                error := sqlerrm;
                code := case when sqlstate like '22%' then 'SL004' else sqlstate end;
            end;
            if error is null then
                waits := orders[n] is not null and array_position(orders, orders[n]) < n
                    or exists (select from unnest(job.after) as a where coalesce(not done[array_position(ids, a)], false) and a <> ids[n]);
                continue when waits;
            end if;
            progress := true;
            done[n] := true;
            orders[n] := null;
            if error is not null then
                return next;
                continue;
            end if;
            if coalesce(job.key, '') = '' and array_position(ids, ids[n]) = n then
                plain := plain || n;
                continue;
            end if;
            for row in select p.* from sluice._enqueue_together(items, ids, plain, twins) p loop
                no := row.no; id := row.id; duplicate := row.duplicate; error := row.error; code := row.code;
                behind := behind || coalesce(row.behind, '{}');
                return next;
            end loop;
            plain := '{}';
            no := n; id := null; duplicate := null; replaced := null; error := null; code := null;
            job.after := array(select coalesce((twins ->> a::text)::uuid, a) from unnest(job.after) as a);
            job.after_failure := sluice._after_twins(job.after_failure, twins);
            select e.* into row
            from sluice._enqueue({{enqueue values of job}}, true) e;
            if row.missing is not null then
                error := sluice._missing(row.missing);
                code := 'SL005';
                return next;
                continue;
            end if;
            if row.id is null then
                error := sluice._key_of_other(job.key, job.on_duplicate);
                code := 'SL004';
                return next;
                continue;
            end if;
            id := row.id; duplicate := row.duplicate; replaced := row.replaced;
            behind := behind || row.behind;
            if id <> ids[n] then
                twins := twins || jsonb_build_object(ids[n]::text, id);
            end if;
            return next;
        end loop;
        exit when not progress;
    end loop;
    for row in select p.* from sluice._enqueue_together(items, ids, plain, twins) p loop
        no := row.no; id := row.id; duplicate := row.duplicate; replaced := null; error := row.error; code := row.code;
        behind := behind || coalesce(row.behind, '{}');
        return next;
    end loop;
    for n in 1..cardinality(items) loop
        continue when done[n];
        no := n;
        id := null; duplicate := null; replaced := null;
        error := 'after: the jobs of the call wait for each other in a circle';
        code := 'SL004';
        return next;
    end loop;
    perform sluice._unblock(behind);
    perform sluice._notify(q) from unnest(queues) as q where sluice._may('produce', q) and q is not null;
end
$function$;
