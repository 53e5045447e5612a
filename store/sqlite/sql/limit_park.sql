-- Sets jobs aside until a limit lets their limit keys in. They leave their tenants' queues.
-- ?1 JSON list of seqs
update sluice_live set parked = 1, blocked_by = seq, in_tenant_queue = 0 where seq in (select value from json_each(?1))
