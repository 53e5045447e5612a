-- Keeps the mark before which no active tenant queue of a queue is.
-- ?1 queue   ?2 turn   ?3 tenant
insert into sluice_flow (queue, tokens, filled_at, turn, tenant) values (?1, 0, 0, ?2, ?3)
on conflict (queue) do update set turn = excluded.turn, tenant = excluded.tenant
