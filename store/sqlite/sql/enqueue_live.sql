-- Makes a job wait in its queue.
-- ?1 seq   ?2 queue   ?3 tenant   ?4 priority   ?5 due_at   ?6 expires_at or null   ?7 keyed   ?8 blocked_by or null   ?9 generation   ?10 in_tenant_queue   ?11 batch or null   ?12 limit key or null   ?13 cost
insert into sluice_live (seq, queue, tenant, priority, due_at, expires_at, keyed, blocked_by, generation, in_tenant_queue, batch_id, limit_key, cost)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
