-- Some jobs of a tenant that are in flight in a queue, or of which a run may be, the longest first. At most the limit are
-- looked at.
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
