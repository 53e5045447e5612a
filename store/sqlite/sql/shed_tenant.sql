-- Lists the jobs that a full tenant sheds, by the rule of shed.sql.
-- ?1 queue   ?2 tenant   ?3 only jobs with a higher priority number   ?4 limit
select (select j.id from sluice_job j where j.seq = s.seq)
from (select * from (
          select seq, priority, due_at from sluice_live l
          where queue = ?1 and tenant = ?2 and priority > ?3 and state = 'queued' and blocked_by is null and in_tenant_queue = 1
              and order_key is null
              and not exists (select 1 from sluice_after a where a.after_id = (select j.id from sluice_job j where j.seq = l.seq))
          order by priority desc, due_at desc
          limit ?4 + 0)
      union all
      select seq, priority, due_at
      from (select seq, tenant, priority, due_at, order_key from sluice_live where queue = ?1 and parked limit 10000) p
      where tenant = ?2 and priority > ?3 and order_key is null
          and not exists (select 1 from sluice_after a where a.after_id = (select j.id from sluice_job j where j.seq = p.seq))) s
order by priority desc, due_at desc
limit ?4 + 0
