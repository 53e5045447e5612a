-- Some jobs of a tenant that are in flight in a queue, the longest first. At most the limit are looked at.
-- ?1 queue   ?2 tenant   ?3 limit
select j.id
from (select seq, claimed_at from sluice_live
      where queue = ?1 and tenant = ?2 and tenant <> '' and state in ('claimed', 'dispatched') limit 1000) h
join sluice_job j on j.seq = h.seq
order by h.claimed_at, h.seq
limit ?3
