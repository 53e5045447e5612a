-- Decides which jobs limits per key let in, by what is in flight of their limit keys and by the keys' rates. Of candidates that
-- a claim found, it parks those that must wait: they wait for themselves, and no claim walks over them. Of the limit keys whose
-- time has come, it lets the first parked jobs in, by priority and due time. The lock of the limits is held, so that nobody adds
-- to what is in flight.
-- A lane is a limit key of a limit with parked jobs in the queue. It says when to look again.
-- $1 text queue   $2 text[] names of the limits, $3 integer[] their concurrency (0: no limit), $4 double precision[] their rates per
-- second (0: none) and $5 double precision[] the jobs that their buckets hold   $6 timestamptz now
-- $7 uuid[] candidates, locked   $8 integer parked jobs of each lane to look at (0: look at no lane)   $9 integer lanes to look at
with lim as materialized (
    select l.name, l.concurrency, l.rate, l.burst
    from unnest($2::text[], $3::integer[], $4::double precision[], $5::double precision[]) as l(name, concurrency, rate, burst)
), due as materialized (
    select w.name, w.key
    from unnest($2::text[]) as n(name)
    cross join lateral (
        select l.name, l.key, l.wake_at
        from sluice.limit_lane l
        where l.queue = $1::text and l.name = n.name and l.wake_at <= $6::timestamptz and $8::integer > 0
        order by l.wake_at
        limit $9::integer
    ) w
    limit $9::integer
), heads as materialized (
    select h.id, d.key, h.priority, h.due_at
    from (select distinct key from due) d
    cross join lateral (
        select l.id, l.priority, l.due_at
        from sluice.live l
        where l.queue = $1::text and l.limit_key = d.key and l.parked
        order by l.priority, l.due_at, l.id
        limit $8::integer
        for update skip locked
    ) h
), given as materialized (
    select c.id, c.key, c.priority, c.due_at, false as parked
    from (select distinct g.id from unnest($7::uuid[]) as g(id)) i
    cross join lateral (select l.id, l.limit_key as key, l.priority, l.due_at from sluice.live l where l.id = i.id and l.limit_key is not null offset 0) c
    union all
    select h.id, h.key, h.priority, h.due_at, true from heads h
), wanted as materialized (
    select key, count(*) as jobs from given group by key
), sharing as materialized (
    select q.name as queue, n.name
    from sluice.queue q
    cross join lateral unnest(string_to_array(q.limits, ',')) as n(name)
    where q.limits <> '' and n.name = any ($2::text[])
), state as materialized (
    select w.key, w.jobs, l.name, l.rate, k.closed_until,
           case when l.rate > 0 and k.filled_at is null then l.burst
                when l.rate > 0 then least(l.burst, k.tokens + l.rate * greatest(extract(epoch from $6::timestamptz - k.filled_at)::double precision, 0)) end as tokens,
           case when l.concurrency > 0 then greatest(l.concurrency - f.jobs - o.runs, 0) end as free
    from wanted w
    cross join lim l
    left join lateral (
        select s.tokens, s.filled_at, s.closed_until from sluice.limit_key s where s.name = l.name and s.key = w.key offset 0
    ) k on true
    cross join lateral (
        select count(*) as jobs
        from (select from sluice.live h
              where h.limit_key = w.key and h.limit_key is not null and h.state in ('claimed', 'dispatched') and l.concurrency > 0
                and exists (select from sharing s where s.name = l.name and s.queue = h.queue)
              limit l.concurrency) c
    ) f
    cross join lateral (
        select count(*) as runs
        from sharing s
        cross join lateral (select r.job_id from sluice.orphan_run r where r.queue = s.queue and l.concurrency > 0 offset 0) r
        cross join lateral (select from sluice.job j where j.id = r.job_id and j.limit_key = w.key offset 0) j
        where s.name = l.name
    ) o
), room as materialized (
    select s.key, s.name, s.jobs, least(s.free, floor(s.tokens + 1e-9), case when s.closed_until > $6::timestamptz then 0 end) as room,
           case when s.closed_until > $6::timestamptz then s.closed_until
                when s.free <= floor(s.tokens + 1e-9) or s.tokens is null then $6::timestamptz + interval '10 minutes'
                else $6::timestamptz + make_interval(secs => greatest(1 - (s.tokens - floor(s.tokens + 1e-9)), 0) / s.rate) end as wake_at
    from state s
), least_room as materialized (
    select key, min(room) as room from room group by key
), judged as materialized (
    select g.id, g.key, g.parked,
           coalesce(row_number() over (partition by g.key order by g.priority, g.due_at, g.id) <= m.room, true) as fits
    from given g
    join least_room m on m.key = g.key
), moved as (
    update sluice.live l
    set parked = not l.parked, blocked_by = case when l.parked then null else l.id end, in_tenant_queue = false
    where l.id = any (array(select j.id from judged j where j.fits = j.parked))
), tally as materialized (
    select w.key, coalesce(bool_or(not j.fits), false) as blocked, count(*) filter (where j.parked) as heads
    from (select key from wanted union select key from due) w
    left join judged j on j.key = w.key
    group by w.key
), slept as (
    insert into sluice.limit_lane (name, key, queue, wake_at)
    select r.name, r.key, $1::text, r.wake_at
    from room r
    join tally t on t.key = r.key
    where t.blocked and coalesce(r.room < r.jobs, false)
    order by r.name collate "C", r.key collate "C"
    on conflict (name, key, queue) do update set wake_at = excluded.wake_at
), emptied as (
    delete from sluice.limit_lane
    where ctid = any (array(
        select w.place
        from due d
        join tally t on t.key = d.key
        left join room r on r.key = d.key and r.name = d.name
        cross join lateral (select l.ctid as place from sluice.limit_lane l where l.name = d.name and l.key = d.key and l.queue = $1::text offset 0) w
        where case when t.blocked then not coalesce(r.room < r.jobs, false) else t.heads < $8::integer end
    ))
)
select id, fits, parked from judged
