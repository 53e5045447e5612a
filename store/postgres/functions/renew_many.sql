-- worker: Extends many claims. A lost claim returns held = false.
create or replace function sluice.renew_many(
    ids           uuid[],
    tokens        uuid[],                       -- one for each id
    lease_seconds double precision default null -- null: the queue's setting lease
) returns table (
    id          uuid,
    held        boolean,
    lease_until timestamptz
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    allowed uuid[];
    sorted  uuid[];
    found_held uuid[] := '{}';
begin
    perform sluice._check_batch(ids, tokens);
    allowed := sluice._allowed(ids);
    sorted := array(select distinct g from unnest(allowed) as g order by g);
    for id in execute {{renew.sql}} using sorted,
        array(select (array_agg(g.t))[1] from unnest(ids, tokens) as g(i, t) where g.i = any (sorted) group by g.i order by g.i),
        array(select sluice._lease(j.queue, lease_seconds) from unnest(sorted) as g(i) left join lateral (select * from sluice.job w where w.id = g.i offset 0) j on true order by g.i)
    loop
        found_held := found_held || id;
    end loop;
    for id, held, lease_until in
        select g.i, g.i = any (found_held), l.lease_until
        from unnest(ids) with ordinality as g(i, n)
        left join lateral (select * from sluice.live w where w.id = g.i and g.i = any (found_held) offset 0) l on true
        order by g.n
    loop
        return next;
    end loop;
end
$function$;
