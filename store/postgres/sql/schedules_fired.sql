-- Stores the next fires of schedules after their fires, in the transaction that locked them. The series makes the
-- server expect many schedules; see end.sql.
-- $1 text[] names   $2 timestamptz[] next_at   $3 text[] progress
update sluice.schedule s
set next_at = g.next_at, progress = g.progress
from rows from (unnest($1::text[], $2::timestamptz[], $3::text[]), generate_series(1, cardinality($1::text[]))) as g(name, next_at, progress)
where s.name = g.name and s.name = any ($1::text[])
