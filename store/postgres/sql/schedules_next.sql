-- How many microseconds until the next fire of any schedule is due; no row: there is none.
select (extract(epoch from next_at - now()) * 1000000)::bigint from sluice.schedule where next_at is not null order by next_at limit 1
