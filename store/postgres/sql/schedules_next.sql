-- When the next fire of any schedule is due, and how many microseconds that is ahead; no row: there is none. The search begins
-- at a low-water mark, because the index keeps the entries of fires that have been for as long as an old transaction is open.
-- $1 timestamptz low-water mark
select next_at, (extract(epoch from next_at - now()) * 1000000)::bigint
from sluice.schedule
where next_at >= $1::timestamptz
order by next_at
limit 1
