-- Counts what tenants have in flight in a queue, each up to a limit; walks along the index sluice_live_held.
-- ?1 queue   ?2 tenants as a JSON array   ?3 limit
select t.value, (select count(*) from (select 1 from sluice_live l where l.queue = ?1 and l.tenant = t.value and l.tenant <> ''
    and l.state in ('claimed', 'dispatched') limit ?3))
from json_each(?2) t
