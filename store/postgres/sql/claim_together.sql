-- Claims due jobs of several queues, one queue after the other; see claim.sql. A queue gives nothing if it has limits,
-- serves its tenants in turns, is paused, or has an engine.
-- $1 text[] queues   $2 integer[] the limit and $3 interval[] the lease of each   $4 timestamptz[] and $5 uuid[] the low-water
-- marks, ten for each queue   $6 integer limit   $7 uuid token   $8 text holder   $9 smallint[] the priorities in order, ten for each queue
with claimed as (
    update sluice.live l
    set state = 'claimed', token = $7::uuid, holder = $8::text, claimed_at = now(),
        lease_until = now() + ($3::interval[])[array_position($1::text[], l.queue)]
    where l.ctid = any (array(
        select due.place
        from (
            select a.queue, a.most, a.place
            from unnest($1::text[], $2::integer[]) with ordinality as a(queue, most, place)
            left join sluice.queue q on q.name = a.queue
            where (q.name is null or q.engine = '' and not (q.paused and (q.paused_until is null or q.paused_until > now()))
                   and not (q.rate > 0 or q.concurrency > 0 or q.limits <> '' or q.fair or q.tenant_concurrency > 0 or q.tenant_rate > 0 or q.tenant_max_waiting > 0))
              and not exists (select from sluice.tenant_limit t where t.queue in (a.queue, '') and t.given)
            order by a.place
        ) asked
        cross join lateral (
            select first.place
            from generate_series(asked.place * 10 - 9, asked.place * 10) as p(n)
            cross join lateral (
                select w.ctid as place
                from sluice.live w
                where w.queue = asked.queue and w.priority = ($9::smallint[])[p.n] and w.state = 'queued' and w.blocked_by is null and not w.in_tenant_queue
                  and (w.due_at, w.id) > (($4::timestamptz[])[p.n], ($5::uuid[])[p.n])
                  and w.due_at <= now()
                  and (w.expires_at is null or w.expires_at > greatest(now(), w.due_at))
                order by w.due_at, w.id
                limit asked.most
                for update skip locked
            ) first
            limit asked.most
        ) due
        limit $6::integer
    ))
    returning l.*
), audited as (
    insert into sluice.audit (at, actor, object, name, event, job_id, generation, from_state, to_state)
    select c.claimed_at, $8::text, 'job', c.queue, 'claim', c.id, c.generation, 'queued', 'claimed'
    from claimed c
    join sluice.queue q on q.name = c.queue and q.audit = 'full'
)
select {{c.claimed}}, {{j.given}},
       {{j.more}}, c.queue
from claimed c
left join lateral (select * from sluice.job w where w.id = c.id offset 0) j on true
