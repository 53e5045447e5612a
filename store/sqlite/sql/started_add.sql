-- Counts starts of a queue with a rate.
-- ?1 queue   ?2 at   ?3 jobs
insert into sluice_started (queue, at, jobs) values (?1, ?2, ?3)
on conflict (queue, at) do update set jobs = jobs + excluded.jobs
