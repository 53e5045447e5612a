-- Stores a heartbeat of a holder.
-- ?1 id   ?2 role   ?3 queues as a JSON array   ?4 slots   ?5 busy   ?6 version   ?7 now   ?8 conditions
-- ?9 whether the holder counts jobs for the statistics   ?10 protocol   ?11 mode
insert into sluice_holder (id, role, queues, slots, busy, version, started, seen, conditions, counts, protocol, mode)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9, ?10, ?11)
on conflict (id) do update set queues = excluded.queues, slots = excluded.slots, busy = excluded.busy, seen = excluded.seen,
    conditions = excluded.conditions, counts = excluded.counts, version = excluded.version, protocol = excluded.protocol, mode = excluded.mode
