-- Gives a queued job another place: tenant, priority and due time. It leaves its tenant's queue; a claim puts it into its own.
-- If what limits count of it is changed, it waits for its limit key no more, and the next claim judges it.
-- ?1 seq   ?2 tenant   ?3 priority   ?4 due_at   ?5 limit key or null   ?6 cost   ?7 whether one of the two is changed
update sluice_live
set tenant = ?2, priority = ?3, due_at = ?4, in_tenant_queue = 0, limit_key = ?5, cost = ?6,
    blocked_by = case when ?7 and parked then null else blocked_by end, parked = parked and not ?7
where seq = ?1
