-- Counts the jobs of given tenants in a slice, like wave_places.sql. The statement reads the whole slice.
-- $1 timestamptz now   $2 timestamptz until   $3 uuid after   $4 uuid up to; null: to the end
-- $5 text[] queues   $6 text[] tenants
select l.queue, l.tenant,
       case when l.state <> 'queued' then -2 when l.blocked_by is not null then -3
            when l.due_at <= $1::timestamptz then -1 when l.due_at >= $2::timestamptz then -4
            else floor(date_part('epoch', l.due_at) / 60)::bigint end as place,
       count(*)
from unnest($5::text[], $6::text[]) as named(queue, tenant)
join sluice.live l on l.queue = named.queue and l.tenant = named.tenant
where l.state <> 'uncertain' and l.id > $3::uuid and ($4::uuid is null or l.id <= $4::uuid)
group by l.queue, l.tenant, place
