-- Finds a job that waits for itself, for example for a run of its own to end.
-- ?1 job
select l.seq from sluice_job j join sluice_live l on l.seq = j.seq where j.id = ?1 and l.blocked_by = l.seq
