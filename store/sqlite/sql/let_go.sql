-- Lets the jobs go that waited for an ended job and for nothing else.
-- ?1 seq of the ended job
update sluice_live
set blocked_by = null
where blocked_by = ?1 and order_key is null and not exists (select 1 from sluice_after a where a.seq = sluice_live.seq)
returning queue
