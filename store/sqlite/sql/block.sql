-- Makes a job wait for another job, or lets it go.
-- ?1 seq   ?2 seq of the other or null
update sluice_live set blocked_by = ?2 where seq = ?1
