-- Records the runs that a dispatcher is about to start at an engine, and renews the claims. The statement refuses a run
-- that differs from an earlier intended run, because that run may exist.
-- $1 uuid[] ids, sorted   $2 uuid[] tokens   $3 text[] refs   $4 text[] engines   $5 interval[] leases
-- The server plans this statement without knowing the number of ids. The series makes the server expect many ids; else
-- it would compare each given row with each found row.
with given as (
    select * from rows from (unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::interval[]), generate_series(1, cardinality($1::uuid[])))
        as g(id, token, ref, engine, lease, place)
), held as materialized (
    select l.id
    from given g
    join sluice.live l on l.id = g.id
    where l.id = any ($1::uuid[]) and l.token = g.token and coalesce(l.state = 'claimed', false)
      and (l.engine is null or l.engine = g.engine and l.ref = g.ref)
    order by g.place
    for update of l
), intended as (
    update sluice.live l
    set ref = g.ref, engine = g.engine, lease_until = now() + g.lease
    from given g
    where l.id = g.id and l.id = any (array(select id from held))
)
select id from held
