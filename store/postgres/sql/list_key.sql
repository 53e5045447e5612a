-- Lists a page of the jobs with one key, finished or not, the newest first, along the index job_by_key. The order names
-- the key, so that only this index fits. With old statistics, a walk along the ids would look short.
-- $1 text queue ('': all)   $2 text tenant ('': all)   $3 text key   $4 text[] states   $5 jsonb labels (null: all)
-- $6 uuid below (null: no bound)   $7 integer limit
-- $8 integer attempts at least   $9 integer recoveries at least   $10 uuid from (null: no bound)
select {{j.job}}, coalesce(l.state, d.outcome),
       coalesce(l.generation, d.generation), coalesce(l.due_at, d.due_at), coalesce(l.attempts, d.attempts),
       coalesce(l.releases, d.releases), coalesce(l.recoveries, d.recoveries), case when l.id is null then d.holder else l.holder end,
       case when l.id is null then d.claimed_at else l.claimed_at end, case when l.id is null then d.dispatched_at else l.dispatched_at end,
       l.lease_until, case when l.id is null then d.ref else l.ref end, l.blocked_by, d.finished_at,
       case when l.id is null then d.error else l.error end, null::bytea, null::bytea, null::bytea,
       {{j.more}}, l.engine
from sluice.job j
left join sluice.live l on l.id = j.id
left join lateral (
    select d.generation, d.outcome, d.due_at, d.attempts, d.releases, d.recoveries, d.holder, d.claimed_at, d.dispatched_at, d.ref,
           d.finished_at, d.error
    from sluice.done d
    where d.id = j.id and l.id is null and d.requeued_at is null
    order by d.generation desc
    limit 1
) d on true
where j.key is not null and (j.key, j.id) >= ($3::text, coalesce($10::uuid, '00000000-0000-0000-0000-000000000000')) and (j.key, j.id) < ($3::text, coalesce($6::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
  and ($1::text = '' or j.queue = $1::text) and ($2::text = '' or j.tenant = $2::text)
  and coalesce(l.state, d.outcome) = any ($4::text[])
  and coalesce(l.attempts, d.attempts) >= $8::integer and coalesce(l.recoveries, d.recoveries) >= $9::integer
  and ($5::jsonb is null or j.labels @> $5::jsonb)
order by j.key desc, j.id desc
limit $7::integer
