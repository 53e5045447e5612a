-- Lists the processes with a heartbeat in the last hour. The column needs is a schema step that was applied while the
-- process ran and that needs a newer program; null: there is none.
-- ?1 an hour ago
select id, role, queues, slots, busy, version, started, seen, conditions, counts, protocol, mode,
       (select max(m.works_from) from sluice_migration m
        where m.applied_at > h.started and m.works_from > (select max(k.version) from sluice_migration k where k.applied_at <= h.started)) as needs
from sluice_holder h
where seen > ?1
order by id
