-- Gives a job that has just begun to wait its stored order key. If it waits for no other job, it waits for itself until
-- the caller looks at it.
-- ?1 seq
update sluice_live
set blocked_by = coalesce(blocked_by, seq), order_key = (select j.order_key from sluice_job j where j.seq = ?1)
where seq = ?1
