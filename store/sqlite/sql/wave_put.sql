-- Writes a row of a queue in which a count differs from the one before.
-- ?1 queue   ?2 part   ?3 at   ?4 jobs   ?5 tenants
insert into sluice_wave (queue, part, at, jobs, tenants)
values (?1, ?2, ?3, ?4, ?5)
on conflict (queue, part, at) do update set jobs = excluded.jobs, tenants = excluded.tenants
