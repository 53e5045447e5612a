-- Returns the places of a flow's nodes, each behind the nodes that it runs after. An edge is a pair of places; the
-- edges must be sorted by their first place. The function leaves out nodes that wait for each other in a circle, and
-- the nodes behind them.
create or replace function sluice._flow_order(nodes integer, edges_before integer[], edges_behind integer[]) returns integer[]
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    waits  integer[] := array_fill(0, array[nodes]);
    first  integer[] := array_fill(0, array[nodes]); -- the first edge of each node; 0: none
    sorted integer[] := '{}';
    head   integer := 1;
    at     integer;
begin
    for k in 1..cardinality(edges_before) loop
        waits[edges_behind[k]] := waits[edges_behind[k]] + 1;
        if first[edges_before[k]] = 0 then
            first[edges_before[k]] := k;
        end if;
    end loop;
    for n in 1..nodes loop
        if waits[n] = 0 then
            sorted := sorted || n;
        end if;
    end loop;
    while head <= cardinality(sorted) loop
        at := first[sorted[head]];
        while at > 0 and edges_before[at] = sorted[head] loop
            waits[edges_behind[at]] := waits[edges_behind[at]] - 1;
            if waits[edges_behind[at]] = 0 then
                sorted := sorted || edges_behind[at];
            end if;
            at := at + 1;
        end loop;
        head := head + 1;
    end loop;
    return sorted;
end
$function$;
