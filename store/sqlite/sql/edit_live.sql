-- Changes the tenant, priority and due time of a queued job. The job leaves its tenant queue; a claim puts it into a
-- tenant queue again.
-- ?1 seq   ?2 tenant   ?3 priority   ?4 due_at   ?5 limit key or null   ?6 cost
update sluice_live
set tenant = ?2, priority = ?3, due_at = ?4, in_tenant_queue = 0, limit_key = ?5, cost = ?6
where seq = ?1
