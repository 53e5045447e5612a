-- Reads the rule for new queues, the number of queues apart from internal ones, and whether a queue is stored.
-- ?1 queue
select coalesce(p.max_queues, 10000), coalesce(p.declared, 0), coalesce(p.version, 0), p.changed_at, coalesce(p.changed_by, ''),
       coalesce(p.reason, ''), (select count(*) from sluice_queue where name not glob 'sluice.*'), exists (select 1 from sluice_queue where name = ?1)
from (select 1) as always
left join sluice_queue_policy p on true
