-- Gives a job a key that nobody has.
-- ?1 queue   ?2 key   ?3 job id   ?4 until (null: while the job is unfinished)
insert into sluice_job_key (queue, key, job_id, until)
values (?1, ?2, ?3, ?4)
on conflict (queue, key) do nothing
