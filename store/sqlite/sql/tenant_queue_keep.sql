-- Stores a tenant queue after its turn.
-- ?1 queue   ?2 tenant   ?3 virtual_start   ?4 jobs   ?5 active   ?6 at_limit   ?7 wake_at or null   ?8 tokens   ?9 filled_at or null
update sluice_tenant_queue
set virtual_start = ?3, jobs = ?4, active = ?5, at_limit = ?6, wake_at = ?7, tokens = ?8, filled_at = ?9
where queue = ?1 and tenant = ?2
