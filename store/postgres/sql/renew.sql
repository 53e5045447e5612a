-- Gives claims more time; returns the ones that are still held.
-- $1 uuid[] ids, sorted   $2 uuid[] tokens   $3 interval[] leases
update sluice.live l
set lease_until = now() + g.lease
from unnest($1::uuid[], $2::uuid[], $3::interval[]) as g(id, token, lease)
where l.id = g.id and l.token = g.token and l.state = 'claimed'
returning l.id
