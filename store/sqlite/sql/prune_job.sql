-- Deletes a job that has no life left.
-- ?1 seq
delete from sluice_job
where seq = ?1 and not exists (select 1 from sluice_live where seq = ?1) and not exists (select 1 from sluice_done where seq = ?1)
