-- Lets the jobs go that waited for a job which has ended.
-- ?1 seq of the ended job
update sluice_live set blocked_by = null where blocked_by = ?1 returning queue
