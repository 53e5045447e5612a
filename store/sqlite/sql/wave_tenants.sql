-- Counts the jobs of given tenants in a slice, like wave_jobs.sql. The statement reads the whole slice.
-- ?1 now   ?2 until   ?3 seq after   ?4 seq up to   ?5 the tenants, as a JSON array of [queue, name]
select queue, tenant,
       case when state in ('claimed', 'dispatched') then -2
            when blocked_by is not null then -3
            when due_at <= ?1 then -1
            when due_at >= ?2 then -4
            else due_at / 60000000 end as place,
       count(*)
from sluice_live not indexed
where seq > ?3 and seq <= ?4 and state <> 'uncertain'
  and (queue, tenant) in (select value ->> 0, value ->> 1 from json_each(?5))
group by queue, tenant, place
