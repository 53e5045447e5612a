-- Lists the jobs that a full queue sheds if it serves its tenants in turns. The rule of shed.sql applies to the 10,000
-- jobs that are due last, and to 10,000 that limit keys keep waiting.
-- ?1 queue   ?2 only jobs with a higher priority number   ?3 limit
select (select j.id from sluice_job j where j.seq = l.seq)
from (select * from (
          select seq, priority, due_at, order_key from sluice_live
          where queue = ?1 and state = 'queued' and blocked_by is null and in_tenant_queue = 1
          order by due_at desc limit 10000)
      union all
      select * from (select seq, priority, due_at, order_key from sluice_live where queue = ?1 and parked limit 10000)) l
where priority > ?2 and order_key is null
    and not exists (select 1 from sluice_after a where a.after_id = (select j.id from sluice_job j where j.seq = l.seq))
order by priority desc, due_at desc
limit ?3 + 0
