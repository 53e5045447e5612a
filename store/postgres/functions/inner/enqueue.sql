-- Stores one job. The caller has checked the job, and has recorded its queue in sluice.awaited if needed. Missing names
-- a job of `after` that is not stored; then the function stores nothing. It also stores nothing if the job would change a
-- job of another tenant, which holds its key; then id is null. The caller unblocks the jobs in behind. Prepared says that
-- the order key is locked already, and that the queue has room for the job.
create or replace function sluice._enqueue({{enqueue arguments}}, prepared boolean)
returns table (id uuid, duplicate boolean, replaced uuid, behind uuid[], missing uuid)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    rest     uuid[] := '{}';
    furthest uuid; -- the last, by id, of the jobs that it waits for; see unblock.sql
    blocker  uuid;
    last     uuid;
    place    bigint;
    sent     boolean := false;
    found_id uuid;
    completed boolean;
    known    uuid[] := '{}';
    settings record;
    twin     record;
    taken    uuid;
    bytes    bytea := sluice._bytes(payload);
    label_text text := case when jsonb_typeof(labels) = 'object' and labels <> '{}' then labels::text else '' end;
    a_queue  text;
    a_key    text;
begin
    after := array(select distinct a from unnest(after) as a order by a);
    key := coalesce(key, '');
    order_key := coalesce(order_key, '');
    duplicate := false;
    behind := '{}';
    id := job_id;
    if order_key <> '' or after <> '{}' then
        if order_key <> '' then
            if not prepared then
                execute {{order_lock.sql}} using array[queue], array[order_key];
            end if;
            execute {{order_last.sql}} into a_queue, a_key, last using array[queue], array[order_key];
            execute {{order_places.sql}} into place using 1;
        end if;
        execute {{stored.sql}} into found_id using array[job_id];
        sent := found_id is not null;
        for found_id, completed in execute {{after_find.sql}} using after loop
            known := known || found_id;
            continue when completed;
            rest := rest || found_id;
            furthest := greatest(furthest, found_id);
        end loop;
        if not sent and cardinality(known) < cardinality(after) then
            select a into missing from unnest(after) as a where not a = any (known) limit 1;
            return next;
            return;
        end if;
    end if;
    if key <> '' then
        select h.* into twin from sluice._place_behind(queue, key, job_id, tenant, key_scope, key_window, on_duplicate, bytes, label_text, due_at, delay, expires_at) h;
        if twin.refused then
            id := null;
            return next;
            return;
        end if;
        if twin.duplicate_of is not null then
            id := twin.duplicate_of;
            duplicate := true;
            return next;
            return;
        end if;
        replaced := twin.replaced;
        due_at := coalesce(twin.starts_at, due_at);
        blocker := twin.blocked_by;
        behind := array_remove(array[twin.awaited, twin.blocked_by], null);
    end if;
    if (order_key <> '' or after <> '{}') and not sent then
        blocker := coalesce(blocker, last, furthest);
        if blocker is not null then
            behind := behind || blocker || rest;
        end if;
    else
        place := null;
    end if;
    select q.audit = 'full' as audited,
           coalesce(q.fair or q.tenant_concurrency > 0 or q.tenant_rate > 0 or q.tenant_max_waiting > 0, false)
               or exists (select from sluice.tenant_limit t where t.queue in (g.name, '') and t.given) as by_tenant,
           q.max_waiting, q.tenant_max_waiting, q.shed
    into settings
    from (select _enqueue.queue as name) g left join sluice.queue q on q.name = g.name;
    if not prepared and (settings.tenant_max_waiting > 0 or settings.max_waiting > 0) then
        execute {{stored.sql}} into found_id using array[job_id];
        prepared := found_id is not null; -- an earlier call has stored it, and it may be what fills the queue
    end if;
    if not prepared and settings.tenant_max_waiting > 0 and tenant <> '' then
        perform sluice._make_room(queue, tenant, 1, priority, settings.tenant_max_waiting, settings.shed);
    end if;
    if not prepared and settings.max_waiting > 0 then
        perform sluice._make_room(queue, '', 1, priority, settings.max_waiting, settings.shed);
    end if;
    execute {{enqueue.sql}} into taken using
        array[job_id], array[queue], array[coalesce(tenant, '')], array[priority::smallint], array[key], null::text[],
        array[label_text], array[coalesce(max_attempts, 0)::smallint],
        array[due_at], array[coalesce(delay, '0')], array[expires_at], array[key <> '' and key_scope = 'unfinished'], array[case when hold <> '' then job_id else blocker end],
        array[coalesce(settings.audited, false)], array[1], array[octet_length(bytes)], array[settings.by_tenant],
        array[case when place is not null then order_key else '' end], array[coalesce(place, 0)],
        array[case when after <> '{}' and not sent then after::text else '' end],
        array[case when after <> '{}' then coalesce(nullif(after_failure, ''), 'cancel') else '' end],
        array[coalesce((extract(epoch from timeout) * 1000)::bigint, 0)], array[batch_id], array[coalesce(limit_key, '')], array[coalesce(cost, 0)], bytes;
    duplicate := taken is not null;
    if not duplicate then
        insert into sluice.stat_call (queue, tenant, event, jobs) values (queue, coalesce(tenant, ''), 'enqueue', 1);
    end if;
    if not duplicate and hold <> '' then
        execute {{hold_put.sql}} using array[job_id], array[queue], array[hold], 'producer', array[blocker];
    end if;
    if not duplicate and rest <> '{}' then
        execute {{after_put.sql}} using rest, array_fill(job_id, array[cardinality(rest)]),
            array(select sluice._after_rule(after_failure, r) from unnest(rest) with ordinality as g(r, n) order by n);
    end if;
    return next;
end
$function$;
