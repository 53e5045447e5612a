-- Returns when the next fire of any schedule is due, and the microseconds until then; no row: there is none. The search
-- begins at a low-water mark, because an old transaction keeps the index entries of past fires.
-- $1 timestamptz low-water mark
select next_at, (extract(epoch from next_at - now()) * 1000000)::bigint
from sluice.schedule
where next_at >= $1::timestamptz
order by next_at
limit 1
