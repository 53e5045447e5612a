-- Gives a job that has just begun to wait the order key that it was stored with. Until it is looked at, it waits for
-- itself, if for no other.
-- ?1 seq
update sluice_live
set blocked_by = coalesce(blocked_by, seq), order_key = (select j.order_key from sluice_job j where j.seq = ?1)
where seq = ?1
