-- Deletes the rows of jobs that a requeued job waited for in an earlier life, and that have ended since.
-- ?1 seq
delete from sluice_after
where (after_id, seq) in (
    select a.after_id, a.seq from sluice_after a indexed by sluice_after_waiting
    where a.seq = ?1 and not exists (select 1 from sluice_job j join sluice_live l on l.seq = j.seq where j.id = a.after_id))
