-- Reads the rows of a queue's last count.
-- ?1 queue
select part, at, jobs, tenants from sluice_wave where queue = ?1
