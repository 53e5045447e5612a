-- Whether jobs of a queue that has no settings have others waiting for them.
-- ?1 queue
select exists (select 1 from sluice_awaited where queue = ?1)
