-- Extends claims with less than two thirds of their lease left, and returns all claims that are still held. The
-- statement does not wait for a locked row, because its holder settles that job now and the other claims must not wait.
-- $1 uuid[] ids, sorted   $2 uuid[] tokens   $3 interval[] leases
-- The server plans this statement without knowing the number of ids. The series makes the server expect many ids; else
-- it would compare each given row with each found row.
with given as (
    select * from rows from (unnest($1::uuid[], $2::uuid[], $3::interval[]), generate_series(1, cardinality($1::uuid[]))) as g(id, token, lease)
), held as materialized (
    select l.id
    from given g
    join sluice.live l on l.id = g.id
    where l.id = any ($1::uuid[]) and l.token = g.token and coalesce(l.state = 'claimed', false)
), ageing as materialized (
    select l.id
    from given g
    join sluice.live l on l.id = g.id
    where l.id = any (array(select id from held)) and l.token = g.token and coalesce(l.state = 'claimed', false)
      and l.lease_until < now() + g.lease * 2 / 3
    for no key update of l skip locked
), renewed as (
    update sluice.live l
    set lease_until = now() + g.lease
    from given g
    where l.id = g.id and l.id = any (array(select id from ageing))
)
select id from held
