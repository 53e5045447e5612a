-- What a job waits for in its order: the one before it, or one behind it that was let go before it came back. One that waits
-- for its limit key was let go too, and keeps its turn.
-- ?1 queue   ?2 order key   ?3 seq
select coalesce(
    (select max(seq) from sluice_live where queue = ?1 and order_key = ?2 and seq < ?3),
    (select seq from sluice_live where queue = ?1 and order_key = ?2 and (blocked_by is null or parked) and seq <> ?3))
