-- Stores the rule for new queues, whose version was read in the same transaction.
-- ?1 max_queues   ?2 declared   ?3 version   ?4 now   ?5 actor   ?6 reason
insert into sluice_queue_policy (id, max_queues, declared, version, changed_at, changed_by, reason) values (1, ?1, ?2, ?3, ?4, ?5, ?6)
on conflict (id) do update set max_queues = excluded.max_queues, declared = excluded.declared, version = excluded.version,
    changed_at = excluded.changed_at, changed_by = excluded.changed_by, reason = excluded.reason
