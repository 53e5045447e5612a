-- Stores an operation, whose version was read in the same transaction.
-- ?1 id   ?2 version   ?3 kind   ?4 state   ?5 created_at   ?6 ended_at or null   ?7 body
insert into sluice_operation (id, version, kind, state, created_at, ended_at, body) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
on conflict (id) do update set version = excluded.version, state = excluded.state, ended_at = excluded.ended_at, body = excluded.body
