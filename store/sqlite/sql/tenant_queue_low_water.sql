-- Stores the low-water mark of a queue: no active tenant queue stands before the mark.
-- ?1 queue   ?2 virtual_start   ?3 tenant
insert into sluice_flow (queue, tokens, filled_at, virtual_start, tenant) values (?1, 0, 0, ?2, ?3)
on conflict (queue) do update set virtual_start = excluded.virtual_start, tenant = excluded.tenant
