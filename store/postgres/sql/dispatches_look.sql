-- Lists a page of the jobs of a queue with an intended or open run, like dispatches.sql but without tokens, which
-- readers may not select. The statement cuts the page before it looks the jobs up, however many there are.
-- $1 text queue   $2 uuid[] ids (null: all)   $3 boolean only claims whose lease ran out   $4 uuid after   $5 integer limit
with page as materialized (
    select id, state, {{life}}, lease_until, ref, blocked_by, error, engine
    from sluice.live
    where queue = $1::text and engine is not null and state in ('claimed', 'dispatched') and id > $4::uuid
      and ($2::uuid[] is null or id = any ($2::uuid[]))
      and (not $3::boolean or state = 'claimed' and lease_until < now())
    order by id
    limit $5::integer
)
select {{j.job}}, l.state, {{l.life}}, l.lease_until, l.ref, l.blocked_by,
       null::timestamptz, l.error, null::bytea, null::bytea, null::bytea,
       {{j.more}}, l.engine, null::uuid
from page l
join sluice.job j on j.id = l.id
order by l.id
