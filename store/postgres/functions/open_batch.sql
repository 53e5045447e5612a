-- producer: Opens a batch, which counts the jobs that are enqueued with its id until close_batch. When all jobs have
-- ended, upkeep enqueues the callback. A repeated call with the same id returns the same batch, and is refused
-- if the stored batch is another one. Inside your own transaction, the batch exists only if the transaction commits.
create or replace function sluice.open_batch(
    name        text default '',      -- for people
    on_complete json default null,    -- the job to enqueue when all jobs have ended: {"queue": …, "payload": …}; null: none
    on_success  json default null,    -- the job to enqueue when all have completed
    on_death    json default null,    -- the job to enqueue when the first one dies
    parent      uuid default null,    -- the open batch around this batch, which completes only after it; null: none
    batch_id    uuid default null     -- an id of your own, best a UUIDv7
) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    calls  json[] := array[on_complete, on_success, on_death];
    names  text[] := array['on_complete', 'on_success', 'on_death'];
    texts  text[] := '{}';
    of_id  uuid := coalesce(batch_id, sluice._new_id());
    unknown text;
    paused text;
    all_calls text;
    opened boolean;
begin
    perform sluice._check_name('name', name, 200);
    for n in 1..3 loop
        continue when calls[n] is null or json_typeof(calls[n]) = 'null';
        if json_typeof(calls[n]) <> 'object' then
            perform sluice._invalid(names[n], 'it must be an object');
        end if;
        select k into unknown from json_object_keys(calls[n]) as k where k not in ('queue', 'payload', 'tenant', 'priority') limit 1;
        if unknown is not null then
            perform sluice._invalid(names[n], format('%L must be queue, payload, tenant or priority', left(unknown, 40)));
        end if;
        perform sluice._check_queue('produce', calls[n] ->> 'queue');
        perform sluice._check_known(calls[n] ->> 'queue');
        perform sluice._check_name('tenant', calls[n] ->> 'tenant', {{max tenant bytes}});
        if coalesce(calls[n] ->> 'priority', '5') !~ '^([1-9]|10)$' then
            perform sluice._invalid(names[n], format('priority %s must be from 1 (first) to 10 (last)', left(calls[n] ->> 'priority', 40)));
        elsif octet_length((calls[n] -> 'payload')::text) > 65536 then
            perform sluice._invalid(names[n], 'its payload is longer than 65536 bytes');
        end if;
        perform sluice._check_depth(names[n] || ': payload', calls[n] -> 'payload');
        texts := texts || (to_json(names[n])::text || ':' || calls[n]::text);
    end loop;
    all_calls := case when texts <> '{}' then '{' || array_to_string(texts, ',') || '}' else '' end;
    if not exists (select from sluice.batch b where b.id = of_id) then
        if open_batch.parent is not null then
            perform sluice._enter_batch(open_batch.parent, null);
            select b.paused into paused from sluice.batch b where b.id = open_batch.parent;
        end if;
        execute {{batch_open.sql}} into opened using of_id, coalesce(open_batch.name, ''), open_batch.parent, all_calls, sluice._caller()::text, coalesce(paused, '');
    end if;
    if opened is null then
        perform sluice._check_batch_again(of_id, coalesce(open_batch.name, ''), open_batch.parent, all_calls);
    end if;
    return of_id;
end
$function$;
