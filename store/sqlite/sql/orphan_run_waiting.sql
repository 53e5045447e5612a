-- A job that waits for a run of its own to end, or for nothing by now.
-- ?1 job
select l.seq from sluice_job j join sluice_live l on l.seq = j.seq where j.id = ?1 and l.blocked_by = l.seq
