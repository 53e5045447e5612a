-- producer: Stores a job. In your own transaction, the job exists only if the transaction commits. With a key or a
-- job_id of your own, you can repeat the call after a lost answer: it finds the first job.
create or replace function sluice.enqueue(
    queue         text,
    payload       json,                           -- kept character for character
    tenant        text default null,              -- the owner of the job
    key           text default null,              -- at most one job of the queue holds a key at a time
    key_scope     text default 'unfinished',      -- how long the job holds its key: unfinished, window or forever
    key_window    interval default null,          -- the length of the scope window; with debounce, the longest wait
    on_duplicate  text default 'keep',            -- keep the first job; replace it if it waits; coalesce into one run after the present run; debounce: put the first job off; all but keep refuse a key of another tenant's job
    due_at        timestamptz default null,       -- not before this instant; null: now
    delay         interval default null,          -- or this long from now
    priority      integer default 5,              -- 1 (first) to 10 (last)
    expires_at    timestamptz default null,       -- upkeep cancels a job that still waits then
    labels        jsonb default null,             -- an object of texts, for searches
    max_attempts  integer default null,           -- null: the queue's setting
    timeout       interval default null,          -- the most time for an attempt; null: the handler's or the queue's timeout
    order_key     text default null,              -- jobs of the queue that share an order key run one at a time, in the order of their storing
    after         uuid[] default null,            -- jobs that must complete before this job runs
    after_failure text default null,              -- if a job of `after` fails: cancel (the default), run or wait
    hold          text default null,              -- why the job is held until somebody releases it; null: it is not held
    batch_id      uuid default null,              -- the open batch of the job, from open_batch; null: none
    limit_key     text default null,              -- the value, such as a host, that limits per key count by; null: none
    cost          integer default null,           -- the units, such as tokens, that limits by cost count; null: 1
    job_id        uuid default null,              -- an id of your own, best a UUIDv7
    new_queue     boolean default false           -- whether the queue may lack settings, if the store allows it; upkeep stores the defaults
) returns table (
    id        uuid,    -- for a duplicate: the id of the job that holds the key
    duplicate boolean, -- true: the job was not stored
    replaced  uuid     -- the waiting job that this job replaced
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    stored record;
    paused text;
begin
    perform sluice._check_queue('produce', queue);
    perform sluice._check_said('new_queue', new_queue);
    if new_queue then
        perform sluice._admit(queue);
    else
        perform sluice._check_known(queue);
    end if;
    perform sluice._check_job({{enqueue values}});
    if job_id is not null or after is not null then
        perform sluice._check_seen(job_id, after);
    end if;
    if batch_id is not null then
        paused := sluice._enter_batch(batch_id, job_id);
        hold := coalesce(nullif(hold, ''), paused);
    end if;
    if order_key is not null or after is not null then
        perform sluice._note_awaited(array[queue], array[order_key], array[key], array[cardinality(after) > 0], after, '{}');
    end if;
    job_id := coalesce(job_id, sluice._new_id());
    select e.* into stored from sluice._enqueue({{enqueue values}}, false) e;
    if stored.missing is not null then
        raise exception using errcode = 'SL005', message = sluice._missing(stored.missing), hint = 'Enqueue that one first, or in the same call of enqueue_many.';
    end if;
    if stored.id is null then
        raise exception using errcode = 'SL004', message = sluice._key_of_other(key, on_duplicate),
            hint = 'Begin the key with the name of the tenant, or set on_duplicate to keep.';
    end if;
    id := stored.id;
    duplicate := stored.duplicate;
    replaced := stored.replaced;
    return next;
    if stored.behind <> '{}' then
        perform sluice._unblock(stored.behind);
    end if;
    perform sluice._notify(queue);
end
$function$;
