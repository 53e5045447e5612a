-- Lists a page of finished jobs, the newest first, without jobs that live again. The lateral join looks up each job by
-- id. Without statistics of done, the server would expect one row there, and read all of it for every job.
-- $1 text queue ('': all)   $2 text tenant ('': all)   $3 text key ('': all)   $4 text[] outcomes   $5 jsonb labels (null: all)
-- $6 uuid below (null: no bound)   $7 integer limit
-- $8 integer attempts at least   $9 integer recoveries at least   $10 uuid from (null: no bound)
select {{j.job}}, d.outcome, {{d.life}}, null::timestamptz, d.ref, null::uuid,
       d.finished_at, d.error, null::bytea, null::bytea, null::bytea,
       {{j.more}}, null::text
from sluice.done d
cross join lateral (
    select {{w.job}}, {{w.more}}
    from sluice.job w where w.id = d.id offset 0
) j
where ($1::text = '' or d.queue = $1::text) and ($2::text = '' or d.tenant = $2::text) and ($3::text = '' or j.key = $3::text)
  and d.outcome = any ($4::text[]) and d.requeued_at is null
  and d.attempts >= $8::integer and d.recoveries >= $9::integer
  and ($5::jsonb is null or j.labels @> $5::jsonb)
  and d.id < coalesce($6::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff') and d.id >= coalesce($10::uuid, '00000000-0000-0000-0000-000000000000') and j.id >= coalesce($10::uuid, '00000000-0000-0000-0000-000000000000')
order by d.id desc
limit $7::integer
