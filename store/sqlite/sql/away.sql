-- Moves a claimed job that leaves its holder but is not finished: dispatch and doubt.
-- ?1 seq   ?2 state   ?3 ref or null   ?4 error or null
update sluice_live
set state = ?2, lease_until = null, ref = coalesce(?3, ref), error = coalesce(?4, error)
where seq = ?1
