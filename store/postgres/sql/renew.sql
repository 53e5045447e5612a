-- Gives claims more time that have less than two thirds of their lease left; returns all that are still held.
-- $1 uuid[] ids, sorted   $2 uuid[] tokens   $3 interval[] leases
with held as materialized (
    select l.id, l.token, l.lease_until, g.lease
    from unnest($1::uuid[], $2::uuid[], $3::interval[]) as g(id, token, lease)
    join sluice.live l on l.id = g.id
    where l.token = g.token and l.state = 'claimed'
), renewed as (
    update sluice.live l
    set lease_until = now() + h.lease
    from held h
    where l.id = h.id and l.token = h.token and l.state = 'claimed' and h.lease_until < now() + h.lease * 2 / 3
)
select id from held
