-- Stores an operation whose version was read in the same transaction. No row: another transaction stored the operation
-- in between.
-- $1 uuid id   $2 bigint version   $3 text kind   $4 text state   $5 timestamptz created_at   $6 timestamptz ended_at (or null)
-- $7 text body
insert into sluice.operation as o (id, version, kind, state, created_at, ended_at, body)
values ($1::uuid, $2::bigint, $3::text, $4::text, $5::timestamptz, $6::timestamptz, $7::text)
on conflict (id) do update
set version = excluded.version, state = excluded.state, ended_at = excluded.ended_at, body = excluded.body
where o.version = excluded.version - 1
returning o.version
