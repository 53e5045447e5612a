-- Deletes rows of a queue's last count that the present count does not have.
-- $1 text queue   $2 text[] parts   $3 timestamptz[] instants
delete from sluice.wave w
using unnest($2::text[], $3::timestamptz[]) as gone(part, at)
where w.queue = $1::text and w.part = gone.part and w.at = gone.at
