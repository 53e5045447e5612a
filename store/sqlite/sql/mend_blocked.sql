-- Lets jobs go that wait behind a job which has ended.
update sluice_live
set blocked_by = null
where blocked_by is not null and not exists (select 1 from sluice_live b where b.seq = sluice_live.blocked_by)
returning queue
