-- Lists the limit keys of a limit that are closed or have parked jobs, by name.
-- ?1 name of the limit   ?2 now   ?3 limit
select key
from sluice_limit_lane l
where l.queue in (select name from sluice_queue where limits <> '' and instr(',' || limits || ',', ',' || ?1 || ',') > 0)
  and exists (select 1 from sluice_live w where w.queue = l.queue and w.limit_key = l.key and w.parked)
union
select key from sluice_limit_key where name = ?1 and closed_until > ?2
order by key
limit ?3 + 0
