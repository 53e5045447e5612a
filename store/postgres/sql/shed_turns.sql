-- Locks the jobs that a full queue sheds if it serves its tenants in turns. The rule of shed.sql applies to the 10,000
-- jobs that are due last, and to 10,000 that limit keys keep waiting.
-- $1 text queue   $2 integer only jobs with a higher priority number   $3 integer limit
select l.id from sluice.live l
where l.id = any (array(
        select w.id from (
            (select l.id, l.priority, l.due_at, l.order_key from sluice.live l
             where l.queue = $1::text and l.state = 'queued' and l.blocked_by is null and l.in_tenant_queue
             order by l.due_at desc limit 10000)
            union all
            (select p.id, p.priority, p.due_at, p.order_key from sluice.live p where p.queue = $1::text and p.parked limit 10000)) w
        where w.priority > $2::integer and w.order_key is null
          and (select a.after_id = w.id from sluice.job_after a where a.after_id >= w.id order by a.after_id limit 1) is not true
        order by w.priority desc, w.due_at desc, w.id desc
        limit $3::integer))
  and l.state = 'queued' and (l.blocked_by is null or l.parked)
order by l.id
for update of l skip locked
