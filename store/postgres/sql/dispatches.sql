-- Lists a page of the jobs of a queue with an intended or open run, by id. The statement cuts the page before it looks
-- the jobs up, however many there are. If somebody deleted a row in sluice.job, created_at is null: see
-- orphans_drop.sql.
-- $1 text queue   $2 uuid[] ids (null: all)   $3 boolean only claims whose lease ran out   $4 uuid after   $5 integer limit
with page as materialized (
    select *
    from sluice.live
    where queue = $1::text and engine is not null and state in ('claimed', 'dispatched') and id > $4::uuid
      and ($2::uuid[] is null or id = any ($2::uuid[]))
      and (not $3::boolean or state = 'claimed' and lease_until < now())
    order by id
    limit $5::integer
)
select l.id, l.queue, l.tenant, l.priority, j.key, j.labels, j.max_attempts, j.created_at, l.expires_at, l.state, {{l.life}}, l.lease_until, l.ref, l.blocked_by,
       null::timestamptz, l.error, null::bytea, null::bytea, null::bytea,
       {{j.more}}, l.engine, l.token
from page l
left join lateral (select * from sluice.job o where o.id = l.id offset 0) j on true
order by l.id
