-- Stores a row of a queue whose count differs from the last count.
-- ?1 queue   ?2 part   ?3 at   ?4 jobs   ?5 tenants
insert into sluice_wave (queue, part, at, jobs, tenants)
values (?1, ?2, ?3, ?4, ?5)
on conflict (queue, part, at) do update set jobs = excluded.jobs, tenants = excluded.tenants
