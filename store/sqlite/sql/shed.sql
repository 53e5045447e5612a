-- Lists the jobs that a full queue sheds: the lowest priority first, and in a priority the last due first. Of the jobs
-- that limit keys keep waiting, it looks at 10,000. The statement never sheds jobs of an order, jobs that wait for others,
-- and jobs that others run after.
-- ?1 queue   ?2 only jobs with a higher priority number   ?3 limit
select (select j.id from sluice_job j where j.seq = s.seq)
from (select * from (
          select seq, priority, due_at from sluice_live l
          where queue = ?1 and priority > ?2 and state = 'queued' and blocked_by is null and in_tenant_queue = 0
              and order_key is null
              and not exists (select 1 from sluice_after a where a.after_id = (select j.id from sluice_job j where j.seq = l.seq))
          order by priority desc, due_at desc
          limit ?3 + 0)
      union all
      select seq, priority, due_at
      from (select seq, priority, due_at, order_key from sluice_live where queue = ?1 and parked limit 10000) p
      where priority > ?2 and order_key is null
          and not exists (select 1 from sluice_after a where a.after_id = (select j.id from sluice_job j where j.seq = p.seq))) s
order by priority desc, due_at desc
limit ?3 + 0
