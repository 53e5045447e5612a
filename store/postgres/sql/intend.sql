-- Notes the runs that an engine is about to be asked for, and renews their claims. Another run than one that was
-- intended before is refused: that one may exist.
-- $1 uuid[] ids, sorted   $2 uuid[] tokens   $3 text[] refs   $4 text[] engines   $5 interval[] leases
with held as materialized (
    select l.id, g.ref, g.engine, g.lease
    from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::interval[]) as g(id, token, ref, engine, lease)
    join sluice.live l on l.id = g.id
    where l.id = any ($1::uuid[]) and l.token = g.token and coalesce(l.state = 'claimed', false)
      and (l.engine is null or l.engine = g.engine and l.ref = g.ref)
    order by l.id
    for update of l
), intended as (
    update sluice.live l
    set ref = h.ref, engine = h.engine, lease_until = now() + h.lease
    from held h
    where l.id = h.id and l.id = any ($1::uuid[])
)
select id from held
