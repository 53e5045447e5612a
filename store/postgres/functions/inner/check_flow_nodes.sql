-- Refuses nodes that break a rule of flows. The function returns the places of the nodes in an order in which each node
-- stands behind the nodes of its `after`.
create or replace function sluice._check_flow_nodes(nodes json[], names text[]) returns integer[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
declare
    edges_before integer[];
    edges_behind integer[];
    sorted integer[];
    name   text;
    waiter text;
begin
    select g into name from unnest(names) as g group by g having count(*) > 1 limit 1;
    if name is not null then
        perform sluice._invalid(format('flow: node %s: name', to_json(name)), 'another node has it too');
    end if;
    for n in 1..cardinality(nodes) loop
        begin
            perform sluice._check_flow_node(nodes[n]);
        exception when sqlstate 'SL004' or data_exception then
            raise exception using errcode = 'SL004', message = format('flow: node %s: %s', coalesce(to_json(names[n])::text, '""'), sqlerrm),
                hint = 'Correct it and call again; nothing was changed.';
        end;
    end loop;
    select w.node ->> 'name', a into waiter, name
    from unnest(nodes) as w(node)
    cross join lateral unnest(sluice._flow_names(w.node -> 'after')) as a
    left join unnest(names) as b(name) on b.name = a
    where b.name is null
    limit 1;
    if name is not null then
        perform sluice._invalid(format('flow: node %s: after', to_json(waiter)), format('the flow has no node %L', left(name, 80)));
    end if;
    select array_agg(b.n order by b.n, w.n), array_agg(w.n order by b.n, w.n) into edges_before, edges_behind
    from unnest(nodes) with ordinality as w(node, n)
    cross join lateral unnest(sluice._flow_names(w.node -> 'after')) as a
    join unnest(names) with ordinality as b(name, n) on b.name = a;
    sorted := sluice._flow_order(cardinality(nodes), coalesce(edges_before, '{}'), coalesce(edges_behind, '{}'));
    if cardinality(sorted) < cardinality(nodes) then
        select string_agg(c.name, ', ' order by c.n) into name
        from (select g.name, g.n from unnest(names) with ordinality as g(name, n) where not g.n = any (sorted) order by g.n limit 5) c;
        perform sluice._invalid('flow: after', format('some nodes wait for each other in a circle; among them and those behind them are %s', name));
    end if;
    return sorted;
end
$function$;
