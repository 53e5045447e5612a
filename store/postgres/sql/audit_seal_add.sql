-- Adds a seal and its batches, unless a seal with its number exists.
-- $1 bigint no   $2 timestamptz at   $3 bigint upto   $4 bytea previous   $5 bigint notable entries   $6 bytea notable hash
-- $7 bigint notable gone   $8 bigint notable keep ms   $9 bigint full entries   $10 bytea full hash   $11 bigint full gone
-- $12 bigint full keep ms   $13 bytea hash   $14 text[] levels   $15 bytea[] batches
with added as (
    insert into sluice.audit_seal (no, at, upto, previous, notable_entries, notable_hash, notable_gone, notable_keep_ms, full_entries, full_hash, full_gone, full_keep_ms, hash)
    values ($1::bigint, $2::timestamptz, $3::bigint, $4::bytea, $5::bigint, $6::bytea, $7::bigint, $8::bigint, $9::bigint, $10::bytea, $11::bigint,
            $12::bigint, $13::bytea)
    on conflict (no) do nothing
    returning no
), listed as (
    insert into sluice.audit_batch (seal, level, body)
    select a.no, b.level, b.body from added a, unnest($14::text[], $15::bytea[]) as b(level, body)
)
select no from added
