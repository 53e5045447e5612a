-- Finds the job that a job waits for in its order: the job before it, or a later job that was let go before this job
-- came back. A parked job counts as let go, and keeps its turn.
-- ?1 queue   ?2 order key   ?3 seq
select coalesce(
    (select max(seq) from sluice_live where queue = ?1 and order_key = ?2 and seq < ?3),
    (select seq from sluice_live where queue = ?1 and order_key = ?2 and (blocked_by is null or parked) and seq <> ?3))
