-- Lets a released job wait for what it waited for before, if that still lives, and otherwise for itself until it is looked at.
-- For a later job of its order, it waits again only if the look finds that this was let go.
-- ?1 seq   ?2 seq of the other job, or null
update sluice_live as l
set blocked_by = coalesce((select b.seq from sluice_live b
                           where b.seq = ?2 and not coalesce(b.order_key = l.order_key and b.queue = l.queue and b.seq > l.seq, false)), seq)
where seq = ?1
