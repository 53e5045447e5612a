-- Returns whether somebody holds a job, or a limit keeps it parked.
-- ?1 job
select exists (select 1 from sluice_hold where job_id = ?1)
    or exists (select 1 from sluice_job j join sluice_live l on l.seq = j.seq where j.id = ?1 and l.parked)
