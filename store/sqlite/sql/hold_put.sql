-- Records the hold of a job, unless somebody holds the job already.
-- ?1 job   ?2 queue   ?3 reason   ?4 by whom   ?5 now   ?6 seq of the job that it would wait for without the hold, or null
insert into sluice_hold (job_id, queue, reason, actor, held_at, behind) values (?1, ?2, ?3, ?4, ?5, ?6)
on conflict (job_id) do nothing
