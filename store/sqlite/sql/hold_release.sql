-- Makes a released job wait again for the job that it waited for before, if that job still lives. Otherwise the job
-- waits for itself until the caller looks at it. A job does not wait again for a later job of its order; the caller's
-- look decides about that one.
-- ?1 seq   ?2 seq of the other job, or null
update sluice_live as l
set blocked_by = coalesce((select b.seq from sluice_live b
                           where b.seq = ?2 and not coalesce(b.order_key = l.order_key and b.queue = l.queue and b.seq > l.seq, false)), seq)
where seq = ?1
