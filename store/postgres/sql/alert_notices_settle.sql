-- Strikes what a receiver was told, and puts off the rest.
-- $1 bigint[] which, in order   $2 boolean[] it was told   $3 bigint[] milliseconds until the next try   $4 text[] why
with results as (
    select * from unnest($1::bigint[], $2::boolean[], $3::bigint[], $4::text[]) as r(seq, done, again_ms, error)
), told as (
    delete from sluice.alert_notice n using results r where r.done and n.seq = r.seq
)
update sluice.alert_notice n
set due_at = now() + r.again_ms * interval '1 millisecond', error = r.error
from results r
where not r.done and n.seq = r.seq
