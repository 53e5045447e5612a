-- Locks the jobs that a full tenant sheds, by the rule of shed.sql.
-- $1 text queue   $2 text tenant   $3 integer only jobs with a higher priority number   $4 integer limit
select l.id from sluice.live l
where l.queue = $1::text and l.tenant = $2::text and l.priority > $3::integer and l.state = 'queued' and l.blocked_by is null
  and l.in_tenant_queue
  and l.order_key is null
  and (select true from sluice.job_after a where a.after_id = l.id limit 1) is null
order by l.priority desc, l.due_at desc, l.id desc
limit $4::integer
for update of l skip locked
