-- Gives claims more time that have less than two thirds of their lease left; returns all that are still held.
-- A row that is locked is being settled by its own holder, and is passed over: nothing must keep the others waiting.
-- $1 uuid[] ids, sorted   $2 uuid[] tokens   $3 interval[] leases
with held as materialized (
    select l.id, l.token, l.lease_until, g.lease
    from unnest($1::uuid[], $2::uuid[], $3::interval[]) as g(id, token, lease)
    join sluice.live l on l.id = g.id
    where l.id = any ($1::uuid[]) and l.token = g.token and coalesce(l.state = 'claimed', false)
), ageing as materialized (
    select l.id, h.lease
    from held h
    join sluice.live l on l.id = h.id
    where l.id = any ($1::uuid[]) and l.token = h.token and coalesce(l.state = 'claimed', false)
      and h.lease_until < now() + h.lease * 2 / 3
    for no key update of l skip locked
), renewed as (
    update sluice.live l
    set lease_until = now() + a.lease
    from ageing a
    where l.id = a.id and l.id = any ($1::uuid[])
)
select id from held
