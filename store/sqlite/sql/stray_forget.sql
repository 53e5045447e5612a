-- Forgets a run whose job was cancelled.
-- ?1 job   ?2 ref
delete from sluice_stray_run where job_id = ?1 and ref = ?2
