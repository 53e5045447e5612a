-- Stores jobs of a batch without keys, together. The caller has checked the jobs, locked their order keys, and recorded
-- their queues in sluice.awaited if needed. The function refuses a job with a job in `after` that is not stored. The
-- caller must unblock the jobs in behind.
create or replace function sluice._enqueue_together(items json[], ids uuid[], chosen integer[], twins jsonb)
returns table (no integer, id uuid, duplicate boolean, replaced uuid, error text, code text, behind uuid[])
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    job     record;
    taken   uuid[] := '{}';
    found_id uuid; completed boolean; a_queue text; a_key text; a_place bigint;
    s_no integer[] := '{}'; s_ids uuid[] := '{}'; queues text[] := '{}'; tenants text[] := '{}'; priorities smallint[] := '{}'; labels text[] := '{}'; attempts smallint[] := '{}';
    dues timestamptz[] := '{}'; delays interval[] := '{}'; expiries timestamptz[] := '{}'; audited boolean[] := '{}'; in_tenant_queue boolean[] := '{}';
    order_keys text[] := '{}'; places bigint[] := '{}'; afters text[] := '{}'; failures text[] := '{}'; blockers uuid[] := '{}'; limit_keys text[] := '{}'; costs integer[] := '{}'; payloads bytea[] := '{}'; holds text[] := '{}'; timeouts bigint[] := '{}'; batches uuid[] := '{}';
    sent uuid[] := '{}'; known uuid[] := '{}'; is_done boolean[] := '{}';
    lines text[] := '{}'; last_of uuid[] := '{}';
    others uuid[] := '{}'; waiting uuid[] := '{}'; rules text[] := '{}';
    after uuid[]; rest uuid[]; missing text; other uuid; blocker uuid; at integer; has_place boolean;
    all_behind uuid[] := '{}';
begin
    for found_id in execute {{stored.sql}} using array(
        select ids[c] from unnest(chosen) as c where items[c] ->> 'order_key' <> '' or json_typeof(items[c] -> 'after') = 'array')
    loop
        sent := sent || found_id;
    end loop;
    for found_id, completed in execute {{after_find.sql}} using array(
        select distinct coalesce((twins ->> a.value)::uuid, a.value::uuid) from unnest(chosen) as c,
            json_array_elements_text(case when json_typeof(items[c] -> 'after') = 'array' then items[c] -> 'after' else '[]' end) a)
    loop
        known := known || found_id; is_done := is_done || completed;
    end loop;
    for a_queue, a_key, found_id in execute {{order_last.sql}} using
        array(select o.q from (select distinct items[c] ->> 'queue' as q, items[c] ->> 'order_key' as k from unnest(chosen) as c where items[c] ->> 'order_key' <> '') o order by o.q, o.k),
        array(select o.k from (select distinct items[c] ->> 'queue' as q, items[c] ->> 'order_key' as k from unnest(chosen) as c where items[c] ->> 'order_key' <> '') o order by o.q, o.k)
    loop
        lines := lines || (a_queue || ' ' || a_key); last_of := last_of || found_id;
    end loop;
    for job in
        select c as nth, ids[c] as job_id, j.*, sluice._bytes(j.payload) as bytes, coalesce(q.audit = 'full', false) as audited,
               coalesce(q.fair or q.tenant_concurrency > 0 or q.tenant_rate > 0 or q.tenant_max_waiting > 0, false)
                   or exists (select from sluice.tenant_limit t where t.queue in (j.queue, '') and t.given) as by_tenant
        from unnest(chosen) with ordinality as u(c, k)
        cross join lateral sluice._job_of(items[c]) j
        left join sluice.queue q on q.name = j.queue
        order by u.k
    loop
        after := array(select distinct coalesce((twins ->> a::text)::uuid, a) as a from unnest(job.after) as a order by a);
        job.after_failure := sluice._after_twins(job.after_failure, twins);
        rest := '{}'; blocker := null; a_place := 0; error := null;
        has_place := (coalesce(job.order_key, '') <> '' or after <> '{}') and not job.job_id = any (sent);
        if has_place then
            if cardinality(after) > 8 then -- looking up each id would compare all pairs
                select array_agg(a order by a) filter (where not coalesce(k.done, false)), min(a::text) filter (where k.id is null and s.id is null)
                into rest, missing
                from unnest(after) as a
                left join unnest(known, is_done) as k(id, done) on k.id = a
                left join unnest(s_ids) as s(id) on s.id = a;
                rest := coalesce(rest, '{}');
                error := sluice._missing(missing::uuid);
            else
                foreach other in array after loop
                    at := array_position(known, other);
                    if at is null and array_position(s_ids, other) is null then
                        error := sluice._missing(other);
                        exit;
                    end if;
                    rest := rest || case when not coalesce(is_done[at], false) then other end;
                end loop;
                rest := array_remove(rest, null);
            end if;
            if error is not null then
                no := job.nth; id := null; code := 'SL005'; behind := null;
                return next;
                continue;
            end if;
            if job.order_key <> '' then
                execute {{order_places.sql}} into a_place using 1;
                at := coalesce(array_position(lines, job.queue || ' ' || job.order_key), cardinality(lines) + 1);
                lines[at] := job.queue || ' ' || job.order_key;
                blocker := last_of[at];
                last_of[at] := job.job_id;
            end if;
            blocker := coalesce(blocker, rest[cardinality(rest)]); -- the last by id; see unblock.sql
            if blocker is not null then
                all_behind := all_behind || blocker || rest;
            end if;
            others := others || rest;
            waiting := waiting || array_fill(job.job_id, array[cardinality(rest)]);
            rules := rules || array(select sluice._after_rule(job.after_failure, r) from unnest(rest) with ordinality as g(r, n) order by n);
        end if;
        s_no := s_no || job.nth; s_ids := s_ids || job.job_id; queues := queues || job.queue; tenants := tenants || coalesce(job.tenant, '');
        priorities := priorities || job.priority::smallint;
        labels := labels || case when jsonb_typeof(job.labels) = 'object' and job.labels <> '{}' then job.labels::text else '' end;
        attempts := attempts || coalesce(job.max_attempts, 0)::smallint;
        dues := array_append(dues, job.due_at); delays := delays || coalesce(job.delay, '0'); expiries := array_append(expiries, job.expires_at);
        payloads := payloads || job.bytes; audited := audited || job.audited; in_tenant_queue := in_tenant_queue || job.by_tenant;
        order_keys := order_keys || case when has_place then coalesce(job.order_key, '') else '' end; places := places || a_place;
        afters := afters || case when has_place and after <> '{}' then after::text else '' end;
        failures := failures || case when after <> '{}' then coalesce(nullif(job.after_failure, ''), 'cancel') else '' end;
        blockers := array_append(blockers, blocker); batches := array_append(batches, job.batch_id); limit_keys := limit_keys || coalesce(job.limit_key, ''); costs := costs || coalesce(job.cost, 0);
        holds := holds || coalesce(nullif(job.hold, ''), case when job.batch_id is not null then sluice._enter_batch(job.batch_id, job.job_id) end, '');
        timeouts := timeouts || coalesce((extract(epoch from job.timeout) * 1000)::bigint, 0);
    end loop;
    if s_no = '{}' then
        return;
    end if;
    select array_agg(n order by s_ids[n]) into chosen from generate_subscripts(s_ids, 1) as n; -- every statement locks in the same order
    for found_id in execute {{enqueue.sql}} using
        array(select s_ids[n] from unnest(chosen) as n), array(select queues[n] from unnest(chosen) as n), array(select tenants[n] from unnest(chosen) as n),
        array(select priorities[n] from unnest(chosen) as n), null::text[], null::text[],
        array(select labels[n] from unnest(chosen) as n), array(select attempts[n] from unnest(chosen) as n), array(select dues[n] from unnest(chosen) as n),
        array(select delays[n] from unnest(chosen) as n), array(select expiries[n] from unnest(chosen) as n), null::boolean[],
        array(select case when holds[n] <> '' then s_ids[n] else blockers[n] end from unnest(chosen) as n), array(select audited[n] from unnest(chosen) as n),
        array(select (1 + sum(length(payloads[n])) over (order by k) - length(payloads[n]))::integer from unnest(chosen) with ordinality as g(n, k) order by k),
        array(select length(payloads[n]) from unnest(chosen) as n), array(select in_tenant_queue[n] from unnest(chosen) as n),
        array(select order_keys[n] from unnest(chosen) as n), array(select places[n] from unnest(chosen) as n), array(select afters[n] from unnest(chosen) as n),
        array(select failures[n] from unnest(chosen) as n),
        array(select timeouts[n] from unnest(chosen) as n), array(select batches[n] from unnest(chosen) as n),
        array(select limit_keys[n] from unnest(chosen) as n), array(select costs[n] from unnest(chosen) as n),
        (select string_agg(payloads[n], '' order by k) from unnest(chosen) with ordinality as g(n, k))
    loop
        taken := taken || found_id;
    end loop;
    perform sluice._count('enqueue', array_agg(queues[n]), array_agg(tenants[n]))
    from generate_subscripts(s_ids, 1) as n where not s_ids[n] = any (taken);
    chosen := array(select n from unnest(chosen) as n where holds[n] <> '' and not s_ids[n] = any (taken));
    if chosen <> '{}' then
        execute {{hold_put.sql}} using array(select s_ids[n] from unnest(chosen) as n), array(select queues[n] from unnest(chosen) as n),
            array(select holds[n] from unnest(chosen) as n), 'producer', array(select blockers[n] from unnest(chosen) as n);
    end if;
    if others <> '{}' then
        execute {{after_put.sql}} using
            array(select o from unnest(others, waiting) as g(o, w) where not w = any (taken)),
            array(select w from unnest(others, waiting) as g(o, w) where not w = any (taken)),
            array(select r from unnest(rules, waiting) as g(r, w) where not w = any (taken));
    end if;
    error := null; code := null; behind := null;
    for n in 1..cardinality(s_no) loop
        no := s_no[n]; id := s_ids[n]; duplicate := id = any (taken);
        if n = 1 then
            behind := all_behind;
        end if;
        return next;
        behind := null;
    end loop;
end
$function$;
