-- Stores how many jobs a claim took from a queue with a rate, and how many of them have begun or never will.
-- $1 text queue   $2 timestamptz claimed_at   $3 uuid token   $4 bigint jobs   $5 bigint begun   $6 bigint gone   $7 timestamptz check_at
insert into sluice.permit (queue, claimed_at, token, jobs, begun, gone, check_at)
values ($1::text, $2::timestamptz, $3::uuid, $4::bigint, $5::bigint, $6::bigint, $7::timestamptz)
on conflict (queue, claimed_at, token) do update set begun = excluded.begun, gone = excluded.gone, check_at = excluded.check_at
