-- Gives a queued job another place: tenant, priority and due time. It leaves its tenant's queue; a claim puts it into its own.
-- ?1 seq   ?2 tenant   ?3 priority   ?4 due_at
update sluice_live set tenant = ?2, priority = ?3, due_at = ?4, in_tenant_queue = 0 where seq = ?1
