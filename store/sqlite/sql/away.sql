-- Moves a claimed job that leaves its holder unfinished: dispatch and doubt.
-- ?1 seq   ?2 state   ?3 ref or null   ?4 error or null   ?5 now
update sluice_live
set state = ?2, lease_until = null, ref = coalesce(?3, ref), error = coalesce(?4, error),
    dispatched_at = iif(?2 = 'dispatched', ?5, dispatched_at)
where seq = ?1
