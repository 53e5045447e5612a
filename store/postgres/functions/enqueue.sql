-- producer: Stores a job. It may be called inside your own transaction: then the job exists if and only if that commits. With a
-- key, or a job_id of your own, it can be sent again after a lost answer, and finds the first.
create or replace function sluice.enqueue(
    queue         text,
    payload       json,                           -- kept character for character
    tenant        text default null,              -- whom the job belongs to
    key           text default null,              -- at most one job of the queue has it at a time
    key_scope     text default 'unfinished',      -- how long: unfinished, window or forever
    key_window    interval default null,          -- how long, for the scope window; with debounce the longest wait
    on_duplicate  text default 'keep',            -- keep the first; replace it if it waits; coalesce into one run after the one that runs; debounce: put it off
    due_at        timestamptz default null,       -- not before this instant; null: now
    delay         interval default null,          -- or this long from now
    priority      integer default 5,              -- 1 (first) to 10 (last)
    expires_at    timestamptz default null,       -- if it still waits then, it is cancelled
    labels        jsonb default null,             -- an object of texts, to be found by
    max_attempts  integer default null,           -- null: the queue's setting
    timeout       interval default null,          -- how long an attempt may take; null: as the handler or the queue says
    order_key     text default null,              -- jobs of the queue that share it run one at a time, in the order in which they were stored
    after         uuid[] default null,            -- jobs that must have completed before
    after_failure text default null,              -- if one of these fails: cancel (the default), run or wait
    hold          text default null,              -- why no claim is to take the job until somebody releases it; null: nobody holds it
    batch_id      uuid default null,              -- the open batch that the job is to be in, from open_batch; null: none
    limit_key     text default null,              -- the value, such as a host, by which limits that are per key bound the job; null: none
    cost          integer default null,           -- the units, such as tokens, that the job takes of limits by cost; null: 1
    job_id        uuid default null,              -- an id of your own, best a UUIDv7
    new_queue     boolean default false           -- whether the queue may be one without settings, if the store takes such; upkeep gives it the defaults
) returns table (
    id        uuid,    -- of a duplicate, that of the job which holds the key
    duplicate boolean, -- it was not stored
    replaced  uuid     -- the waiting job whose place it took
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
    perform sluice._check_seen(job_id, after);
    paused := sluice._enter_batch(batch_id, job_id);
    hold := coalesce(nullif(hold, ''), paused);
    perform sluice._note_awaited(array[queue], array[order_key], array[key], array[cardinality(after) > 0], after, '{}');
    job_id := coalesce(job_id, sluice._new_id());
    select e.* into stored from sluice._enqueue({{enqueue values}}, false) e;
    if stored.missing is not null then
        raise exception using errcode = 'SL005', message = sluice._missing(stored.missing), hint = 'Enqueue that one first, or in the same call of enqueue_many.';
    end if;
    id := stored.id;
    duplicate := stored.duplicate;
    replaced := stored.replaced;
    return next;
    perform sluice._unblock(stored.behind);
    perform sluice._notify(queue);
end
$function$;
