-- Locks the jobs that a full tenant sheds, by the rule of shed.sql.
-- $1 text queue   $2 text tenant   $3 integer only jobs with a higher priority number   $4 integer limit
with waiting as materialized (
    select l.id, l.priority, l.due_at from sluice.live l
    where l.queue = $1::text and l.tenant = $2::text and l.priority > $3::integer and l.state = 'queued' and l.blocked_by is null
      and l.in_tenant_queue
      and l.order_key is null
      and (select a.after_id = l.id from sluice.job_after a where a.after_id >= l.id order by a.after_id limit 1) is not true
    order by l.priority desc, l.due_at desc, l.id desc
    limit $4::integer
    for update of l skip locked
), parked as materialized (
    select l.id, l.priority, l.due_at from sluice.live l
    where l.id = any (array(
            select w.id from (
                select p.id, p.tenant, p.priority, p.due_at, p.order_key from sluice.live p where p.queue = $1::text and p.parked limit 10000) w
            where w.tenant = $2::text and w.priority > $3::integer and w.order_key is null
              and (select a.after_id = w.id from sluice.job_after a where a.after_id >= w.id order by a.after_id limit 1) is not true
            order by w.priority desc, w.due_at desc, w.id desc
            limit $4::integer))
      and l.parked
    order by l.id
    for update of l skip locked
)
select s.id
from (select id, priority, due_at from waiting union all select id, priority, due_at from parked) s
order by s.priority desc, s.due_at desc, s.id desc
limit $4::integer
