-- Counts starts of a queue with a rate.
-- $1 text queue   $2 timestamptz at   $3 bigint jobs
insert into sluice.started as s (queue, at, jobs) values ($1::text, $2::timestamptz, $3::bigint)
on conflict (queue, at) do update set jobs = s.jobs + excluded.jobs
