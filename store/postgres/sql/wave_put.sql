-- Stores the rows of a queue whose counts differ from the last count.
-- $1 text queue   $2 text[] parts   $3 timestamptz[] instants   $4 bigint[] jobs   $5 text[] tenants
insert into sluice.wave (queue, part, at, jobs, tenants)
select $1::text, put.part, put.at, put.jobs, put.tenants
from unnest($2::text[], $3::timestamptz[], $4::bigint[], $5::text[]) as put(part, at, jobs, tenants)
on conflict (queue, part, at) do update set jobs = excluded.jobs, tenants = excluded.tenants
