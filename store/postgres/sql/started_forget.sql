-- Deletes starts of a queue up to one instant and after another.
-- $1 text queue   $2 timestamptz up to   $3 timestamptz after
delete from sluice.started where queue = $1::text and (at <= $2::timestamptz or at > $3::timestamptz)
