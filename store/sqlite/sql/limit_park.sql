-- Parks jobs until a limit admits their limit keys. They leave their tenant queues.
-- ?1 JSON list of seqs
update sluice_live set parked = 1, blocked_by = seq, in_tenant_queue = 0 where seq in (select value from json_each(?1))
