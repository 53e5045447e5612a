-- Returns when the next tenant queue of a queue wakes (0: one is awake; null: none wakes by itself), and whether some
-- are at their limit.
-- ?1 queue
select iif(exists (select 1 from sluice_tenant_queue where queue = ?1 and active = 1), 0,
           (select min(wake_at) from sluice_tenant_queue where queue = ?1 and active = 0 and wake_at is not null)),
       exists (select 1 from sluice_tenant_queue where queue = ?1 and at_limit = 1)
