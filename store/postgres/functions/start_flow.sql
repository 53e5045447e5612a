-- producer: Stores a flow, which is a graph of jobs, whole or not at all. The function returns the flow's id: the id of
-- the job that ends when all nodes have ended. The error names the first node that breaks a rule. Inside your own
-- transaction, the flow exists only if the transaction commits. A repeated call with the same id returns the same flow.
create or replace function sluice.start_flow(
    flow      json,                 -- as in the file of `sluice flows start`: {"name": …, "nodes": [{"name": …, "queue": …, "payload": …, "after": […]}, …]}
    new_queue boolean default false -- whether the queues may lack settings, if the store allows it
) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    of_id    uuid;
    deadline timestamptz;
    nodes    json[];
    names    text[];
    sorted   integer[];
    items    json[] := '{}';
    ids      uuid[];
    maps     text[];
    queues   text[];
    behind   uuid[] := '{}';
    row      record;
    n        integer;
begin
    perform sluice._check_said('new_queue', new_queue);
    if flow is null or json_typeof(flow) <> 'object' then
        perform sluice._invalid('flow', 'it must be an object with a name and nodes');
    elsif json_typeof(sluice._readable(flow)) = 'string' then
        perform sluice._invalid('flow', 'it has the character NUL, which PostgreSQL cannot read; start it through a program');
    end if;
    perform sluice._check_flow(flow);
    of_id := coalesce(nullif((flow ->> 'id')::uuid, '00000000-0000-0000-0000-000000000000'), sluice._new_id());
    deadline := (flow ->> 'deadline')::timestamptz;
    nodes := array(select json_array_elements(flow -> 'nodes'));
    names := array(select node ->> 'name' from unnest(nodes) as node);
    sorted := sluice._check_flow_nodes(nodes, names);
    ids := array(select sluice._flow_id(of_id, names[s]) from unnest(sorted) with ordinality as g(s, k) order by k) || of_id;
    execute {{flow_start.sql}} using of_id;
    if exists (select from sluice.job j where j.id = of_id and j.queue = 'sluice.flow.end') then
        return of_id;
    end if;
    perform sluice._check_seen(i, null) from unnest(ids) as i;
    maps := array(select node ->> 'name' from unnest(nodes) as node where coalesce(node ->> 'over', '') <> '');
    foreach n in array sorted loop
        begin
            items := items || sluice._flow_job(of_id, nodes[n], maps, deadline, new_queue);
        exception when sqlstate 'SL002' or sqlstate 'SL004' or sqlstate 'SL008' or insufficient_privilege or data_exception then
            raise exception using errcode = case when sqlstate like '22%' then 'SL004' else sqlstate end,
                message = format('flow: node %s: %s', to_json(names[n]), sqlerrm), hint = 'Correct it and call again; nothing was changed.';
        end;
    end loop;
    items := items || json_build_object('queue', 'sluice.flow.end', 'after', to_json(ids[:cardinality(sorted)]), 'after_failure', 'run',
        'labels', json_build_object('flow', flow ->> 'name'), 'payload', json_build_object('name', flow ->> 'name',
            'deadline', case when deadline is not null then to_char(deadline at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') else '0001-01-01T00:00:00Z' end,
            'nodes', (select json_agg(json_build_object('name', names[s], 'queue', nodes[s] -> 'queue', 'after', to_json(sluice._flow_names(nodes[s] -> 'after')),
                'on_failure', coalesce(nodes[s] ->> 'on_failure', ''), 'on_failure_of', nodes[s] -> 'on_failure_of', 'over', coalesce(nodes[s] ->> 'over', ''),
                'tenant', coalesce(nodes[s] ->> 'tenant', '')) order by k)
                from unnest(sorted) with ordinality as g(s, k))));
    queues := array(select distinct i ->> 'queue' from unnest(items) as i);
    perform sluice._make_rooms(items, queues);
    perform sluice._lock_orders(items);
    execute {{awaited.sql}} using queues, ids[:cardinality(sorted)];
    for row in select p.* from sluice._enqueue_together(items, ids, array(select generate_series(1, cardinality(ids))), '{}') p loop
        if row.error is not null then
            raise exception using errcode = row.code, message = format('flow: %s', row.error);
        end if;
        behind := behind || coalesce(row.behind, '{}');
    end loop;
    -- Only the job that was last in an order key can have ended meanwhile: no other session can see the flow's own jobs.
    perform sluice._unblock(array(select b from unnest(behind) as b except select i from unnest(ids) as i));
    perform sluice._notify(q) from unnest(queues) as q;
    return of_id;
end
$function$;
