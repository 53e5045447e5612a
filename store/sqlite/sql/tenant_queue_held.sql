-- Counts the jobs in flight of tenants in a queue and their orphan runs, each up to a limit, along the indexes
-- sluice_live_held and sluice_orphan_run_held.
-- ?1 queue   ?2 tenants as a JSON array   ?3 limit
select t.value, (select count(*) from (select 1 from sluice_live l where l.queue = ?1 and l.tenant = t.value and l.tenant <> ''
    and l.state in ('claimed', 'dispatched') limit ?3 + 0))
    + (select count(*) from (select 1 from sluice_orphan_run s where s.queue = ?1 and s.tenant = t.value and t.value <> '' limit ?3 + 0))
from json_each(?2) t
