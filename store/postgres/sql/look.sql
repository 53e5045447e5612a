-- Returns the milliseconds until the first waiting job of each queue may be claimed, limits aside. It leaves out queues
-- without waiting jobs, and queues that are paused without an end. The walk of each priority begins at its low-water
-- mark, past dead index entries. Of the parked jobs, which limits keep waiting, any one counts: they are due, mostly. A
-- row without a queue says that a schema step needs a newer program.
-- $1 text[] queues   $2 timestamptz[] and $3 uuid[] the low-water marks, ten for each queue   $4 integer the newest schema step that the program knows
select asked.name, (extract(epoch from greatest(first.due_at, case when q.paused then q.paused_until end) - now()) * 1000)::bigint
from unnest($1::text[]) with ordinality as asked(name, place)
cross join lateral (
    select min(due.due_at) as due_at
    from (
        select (
            select w.due_at
            from sluice.live w
            where w.queue = asked.name and w.priority = p.priority and w.state = 'queued' and w.blocked_by is null and not w.in_tenant_queue
              and (w.due_at, w.id) > (($2::timestamptz[])[asked.place * 10 - 10 + p.priority], ($3::uuid[])[asked.place * 10 - 10 + p.priority])
              and (w.expires_at is null or w.expires_at > greatest(now(), w.due_at))
            order by w.due_at, w.id
            limit 1
        ) as due_at
        from generate_series(1, 10) as p(priority)
        union all
        select (
            select w.due_at
            from sluice.live w
            where w.queue = asked.name and w.state = 'queued' and w.blocked_by is null and w.in_tenant_queue
            order by w.due_at
            limit 1
        )
        union all
        select (
            select w.due_at
            from sluice.live w
            where w.queue = asked.name and w.parked and (w.expires_at is null or w.expires_at > greatest(now(), w.due_at))
            order by w.limit_key, w.priority, w.due_at, w.id
            limit 1
        )
    ) due
) first
left join sluice.queue q on q.name = asked.name
where first.due_at is not null and (q.paused is not true or q.paused_until is not null)
union all
select null, 0 where exists (select from sluice.migration where works_from > $4::integer)
