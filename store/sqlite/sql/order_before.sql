-- What a job waits for in its order: the one before it, or one behind it that was let go before it came back.
-- ?1 queue   ?2 order key   ?3 seq
select coalesce(
    (select max(seq) from sluice_live where queue = ?1 and order_key = ?2 and seq < ?3),
    (select seq from sluice_live where queue = ?1 and order_key = ?2 and blocked_by is null and seq <> ?3))
