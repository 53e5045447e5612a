-- The processes that beat within the last hour.
-- ?1 an hour ago
select id, role, queues, slots, busy, version, started, seen, trouble, counts from sluice_holder where seen > ?1 order by id
