-- Changes the tenant, priority and due time of a queued job. The job leaves its tenant queue; a claim puts it into a
-- tenant queue again. If its limit key or cost changes, a parked job waits no more, and the next claim judges it.
-- ?1 seq   ?2 tenant   ?3 priority   ?4 due_at   ?5 limit key or null   ?6 cost   ?7 whether the limit key or the cost changes
update sluice_live
set tenant = ?2, priority = ?3, due_at = ?4, in_tenant_queue = 0, limit_key = ?5, cost = ?6,
    blocked_by = case when ?7 and parked then null else blocked_by end, parked = parked and not ?7
where seq = ?1
