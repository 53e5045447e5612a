-- Deletes an orphan run that has ended. A trigger records that its tenant has room again.
-- ?1 job   ?2 ref
delete from sluice_orphan_run where job_id = ?1 and ref = ?2 returning queue
