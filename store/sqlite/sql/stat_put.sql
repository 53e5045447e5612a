-- Stores a bucket with its sums.
-- ?1 every_s   ?2 at   ?3 queue   ?4 to ?15 counts   ?16 wait   ?17 run   ?18 total   ?19 level   ?20 tenants
insert into sluice_stat (every_s, at, queue, enqueued, requeued, claimed, dispatched, completed, dead, cancelled, uncertain,
                         failed, released, recovered, start_failed, wait, run, total, level, tenants)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)
on conflict (every_s, at, queue) do update set
    enqueued = excluded.enqueued, requeued = excluded.requeued, claimed = excluded.claimed, dispatched = excluded.dispatched,
    completed = excluded.completed, dead = excluded.dead, cancelled = excluded.cancelled, uncertain = excluded.uncertain,
    failed = excluded.failed, released = excluded.released, recovered = excluded.recovered, start_failed = excluded.start_failed,
    wait = excluded.wait, run = excluded.run, total = excluded.total, level = excluded.level, tenants = excluded.tenants
