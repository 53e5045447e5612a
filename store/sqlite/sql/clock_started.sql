-- Counts starts of an earlier boot as now if they lie in the future, because the clock was set back since.
-- ?1 now
insert into sluice_started (queue, at, jobs)
select queue, ?1, sum(jobs) from sluice_started where at > ?1 group by queue
on conflict (queue, at) do update set jobs = jobs + excluded.jobs
