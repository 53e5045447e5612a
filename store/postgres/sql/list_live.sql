-- Lists a page of unfinished jobs, the newest first. The bound $10 applies to both tables, because a merge join without
-- the bound would read all jobs.
-- $1 text queue ('': all)   $2 text tenant ('': all)   $3 text key ('': all)   $4 text[] states   $5 jsonb labels (null: all)
-- $6 uuid below (null: no bound)   $7 integer limit
-- $8 integer attempts at least   $9 integer recoveries at least   $10 uuid from (null: no bound)
select {{j.job}}, l.state, {{l.life}}, l.lease_until, l.ref, l.blocked_by,
       null::timestamptz, l.error, null::bytea, null::bytea, null::bytea,
       {{j.more}}, l.engine
from sluice.live l
cross join lateral (
    select {{w.job}}, {{w.more}}
    from sluice.job w where w.id = l.id offset 0
) j
where ($1::text = '' or l.queue = $1::text) and ($2::text = '' or l.tenant = $2::text) and ($3::text = '' or j.key = $3::text)
  and l.state = any ($4::text[])
  and l.attempts >= $8::integer and l.recoveries >= $9::integer
  and ($5::jsonb is null or j.labels @> $5::jsonb)
  and l.id < coalesce($6::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff') and l.id >= coalesce($10::uuid, '00000000-0000-0000-0000-000000000000') and j.id >= coalesce($10::uuid, '00000000-0000-0000-0000-000000000000')
order by l.id desc
limit $7::integer
