-- Why payments of a queue died.
-- ?1 queue
select coalesce(error, ''), count(*) from sluice_jobs where queue = ?1 and state = 'dead' group by 1 order by 2 desc, 1
