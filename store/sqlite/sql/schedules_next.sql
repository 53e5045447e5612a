-- Returns when the next fire of any schedule is due; no row: there is none.
select next_at from sluice_schedule where next_at is not null order by next_at limit 1
