-- Lists a page of the dead letters of one queue, the newest first, along the index done_dead.
-- $1 text queue   $2 text tenant ('': all)   $3 text key ('': all)   $4 text[] unused, but not null   $5 jsonb labels (null: all)
-- $6 uuid below (null: no bound)   $7 integer limit
-- $8 integer attempts at least   $9 integer recoveries at least   $10 uuid from (null: no bound)
select {{j.job}}, d.outcome, {{d.life}}, null::timestamptz, d.ref, null::uuid,
       d.finished_at, d.error, null::bytea, null::bytea, null::bytea,
       {{j.more}}, null::text
from sluice.done d
join sluice.job j on j.id = d.id
where d.queue = $1::text and d.outcome = 'dead' and d.requeued_at is null
  and ($2::text = '' or d.tenant = $2::text) and ($3::text = '' or j.key = $3::text)
  and $4::text[] is not null
  and d.attempts >= $8::integer and d.recoveries >= $9::integer
  and ($5::jsonb is null or j.labels @> $5::jsonb)
  and d.id >= coalesce($10::uuid, '00000000-0000-0000-0000-000000000000') and d.id < coalesce($6::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
order by d.id desc
limit $7::integer
