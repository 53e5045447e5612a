-- Lists some jobs of a tenant in a queue that are in flight, or whose runs may be open. The job claimed the longest ago
-- comes first. The statement looks at up to 1,000 jobs in flight and 1,000 orphan runs.
-- ?1 queue   ?2 tenant   ?3 limit
select h.id
from (select j.id, f.claimed_at
      from (select seq, claimed_at from sluice_live
            where queue = ?1 and tenant = ?2 and tenant <> '' and state in ('claimed', 'dispatched') limit 1000) f
      join sluice_job j on j.seq = f.seq
      union all
      select job_id, claimed_at
      from (select job_id, claimed_at from sluice_orphan_run where queue = ?1 and tenant = ?2 and tenant <> '' limit 1000)) h
order by h.claimed_at, h.id
limit ?3 + 0
