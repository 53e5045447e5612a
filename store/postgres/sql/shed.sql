-- Locks the jobs that a full queue sheds: the lowest priority first, and in a priority the last due first. The
-- statement never sheds jobs of an order, jobs that wait for others, and jobs that others run after.
-- $1 text queue   $2 integer only jobs with a higher priority number   $3 integer limit
select l.id from sluice.live l
where l.queue = $1::text and l.priority > $2::integer and l.state = 'queued' and l.blocked_by is null and not l.in_tenant_queue
  and l.order_key is null
  and (select true from sluice.job_after a where a.after_id = l.id limit 1) is null
order by l.priority desc, l.due_at desc, l.id desc
limit $3::integer
for update of l skip locked
