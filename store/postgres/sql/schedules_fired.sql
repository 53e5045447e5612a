-- Moves schedules on after their fires, in the transaction that locked them.
-- $1 text[] names   $2 timestamptz[] next_at   $3 text[] progress
update sluice.schedule s
set next_at = g.next_at, progress = g.progress
from unnest($1::text[], $2::timestamptz[], $3::text[]) as g(name, next_at, progress)
where s.name = g.name
