-- Reads the rule for new queues, the number of queues apart from internal ones, and whether a queue is stored.
-- $1 text queue
select coalesce(p.max_queues, 10000) as max_queues, coalesce(p.declared, false) as declared, coalesce(p.version, 0), p.changed_at,
       coalesce(p.changed_by, ''), coalesce(p.reason, ''), (select count(*) from sluice.queue where not starts_with(name, 'sluice.')) as stored,
       exists (select from sluice.queue where name = $1::text)
from (select) as always
left join sluice.queue_policy p on true
