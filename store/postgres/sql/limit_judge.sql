-- Decides which jobs limits per key and limits by cost admit, by the jobs in flight and by their rates.
-- Of the candidates of a claim, the statement parks jobs whose limit keys have no room: a parked job waits for itself,
-- and no claim walks over it. A lane is a limit key of a limit with parked jobs in the queue, and says when to look
-- again. From each lane whose time has come, the statement admits the first parked jobs, by priority and due time. An
-- expired job gets no room: it stays parked until upkeep cancels it. One that is not due any more is let go, and takes none.
-- A limit by cost that is not per key parks nothing: the result says where the claim must stop.
-- The caller holds the lock of the limits, so that no other claim adds jobs in flight.
-- If costs count, no cheaper job overtakes the jobs of a lane whose time has not come. One that comes before all of them is judged.
-- Each look for a parked job is in the order of live_parked, because other indexes lead to every parked job of the queue.
-- A job that costs more than the whole limit is judged as if it cost the whole limit. After its claim, its full cost
-- counts.
-- $1 text queue   $2 text[] names of the limits, $3 integer[] their concurrency (0: no limit), $4 double precision[] their rates per
-- second (0: none) and $5 double precision[] the units that their buckets hold   $6 timestamptz now
-- $7 uuid[] candidates, locked, in the order of the claim   $8 integer parked jobs of each lane to look at (0: look at no lane)
-- $9 integer lanes to look at   $10 boolean[] whether each limit is per key and $11 boolean[] by cost
-- $12 interval how long before they are due the claim takes jobs
with lim as materialized (
    select l.name, l.concurrency, l.rate, l.burst, l.per_key, l.by_cost
    from unnest($2::text[], $3::integer[], $4::double precision[], $5::double precision[], $10::boolean[], $11::boolean[])
        as l(name, concurrency, rate, burst, per_key, by_cost)
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
    select h.id, d.key, case when h.due_at > $6::timestamptz + $12::interval then 0 else h.cost end as cost, h.priority, h.due_at, h.expires_at
    from (select distinct key from due) d
    cross join lateral (
        select l.id, l.cost, l.priority, l.due_at, l.expires_at
        from sluice.live l
        where l.queue = $1::text and l.limit_key = d.key and l.parked
          and (l.expires_at is null or l.expires_at > greatest($6::timestamptz, l.due_at))
        order by l.priority, l.due_at, l.id
        limit $8::integer
        for update skip locked
    ) h
), given as materialized (
    select c.id, c.key, c.cost, c.priority, c.due_at, c.expires_at, false as parked, i.no
    from unnest($7::uuid[]) with ordinality as i(id, no)
    cross join lateral (select l.id, l.limit_key as key, l.cost, l.priority, l.due_at, l.expires_at from sluice.live l where l.id = i.id offset 0) c
    union all
    select h.id, h.key, h.cost, h.priority, h.due_at, h.expires_at, true, 0 from heads h
), wanted as materialized (
    select l.name, g.key, count(*) as jobs from given g cross join lim l where l.per_key and g.key is not null group by l.name, g.key
    union all
    select l.name, null, (select count(*) from given g where not g.parked) from lim l where not l.per_key
), sharing as materialized (
    select q.name as queue, n.name
    from sluice.queue q
    cross join lateral unnest(string_to_array(q.limits, ',')) as n(name)
    where q.limits <> '' and n.name = any ($2::text[])
), state as materialized (
    select w.key, w.jobs, l.name, l.rate, l.burst, l.concurrency, l.per_key, l.by_cost, k.closed_until, z.asleep_until,
           case when l.rate > 0 and k.filled_at is null then l.burst
                when l.rate > 0 then least(l.burst, k.tokens + l.rate * greatest(extract(epoch from $6::timestamptz - k.filled_at)::double precision, 0)) end as tokens,
           case when l.concurrency > 0 then greatest(l.concurrency - f.units - a.units - o.units, 0) end as free,
           case when l.rate > 0 and k.filled_at > $6::timestamptz + interval '1 second' then k.place end as set_back
    from wanted w
    join lim l on l.name = w.name
    left join lateral (
        select s.ctid as place, s.tokens, s.filled_at, s.closed_until from sluice.limit_key s where s.name = l.name and s.key = coalesce(w.key, '') offset 0
    ) k on true
    left join lateral (
        select z.wake_at as asleep_until from sluice.limit_lane z
        where z.name = l.name and z.key = w.key and z.queue = $1::text and l.per_key and l.by_cost and z.wake_at > $6::timestamptz
        offset 0
    ) z on true
    cross join lateral (
        select coalesce(sum(case when l.by_cost then c.cost else 1 end), 0) as units
        from (select h.cost
              from sluice.live h
              where h.limit_key = w.key and h.limit_key is not null and h.state in ('claimed', 'dispatched') and l.concurrency > 0
                and exists (select from sharing s where s.name = l.name and s.queue = h.queue)
              limit l.concurrency) c
    ) f
    cross join lateral (
        select coalesce(sum(c.cost), 0) as units
        from (select h.cost
              from sharing s
              cross join lateral (
                  (select r.cost from sluice.live r where r.queue = s.queue and r.state = 'claimed' order by r.claimed_at limit l.concurrency)
                  union all
                  (select r.cost from sluice.live r where r.queue = s.queue and r.state = 'dispatched' order by r.claimed_at limit l.concurrency)
              ) h
              where s.name = l.name and w.key is null and l.concurrency > 0
              limit l.concurrency) c
    ) a
    cross join lateral (
        select coalesce(sum(case when l.by_cost then r.cost else 1 end), 0) as units
        from sharing s
        cross join lateral (
            (select h.cost from sluice.orphan_run h where h.queue = s.queue and h.limit_key = w.key and l.concurrency > 0 limit l.concurrency)
            union all
            (select h.cost from sluice.orphan_run h
             where h.queue = s.queue and w.key is null and l.concurrency > 0 order by h.tenant limit l.concurrency)
        ) r
        where s.name = l.name
    ) o
), rewound as (
    -- The clock was set back, so these buckets fill from now on.
    update sluice.limit_key set filled_at = $6::timestamptz where ctid = any (array(select s.set_back from state s where s.set_back is not null))
), pairs as materialized (
    -- Each row of state stands beside the candidates of its key, so that the server does not compare each candidate with each key.
    select r.id, r.key, r.name, r.priority, r.due_at, r.look_by, r.parked, r.no, r.full_cost, r.cost, r.rate, r.burst, r.concurrency,
           max(r.free) over of_key as free, max(r.tokens) over of_key as tokens, max(r.closed_until) over of_key as closed_until,
           max(r.asleep_until) over of_key as asleep_until,
           sum(r.cost) over (partition by r.name, r.key order by r.priority, r.due_at, r.id rows unbounded preceding) - r.cost as before
    from (
        select g.id, g.key, l.name, g.priority, g.due_at, g.parked, g.no,
               -- Cheaper jobs wait behind this one, but not once it has expired. While it is not due, other claims may take them.
               case when l.by_cost then least(case when g.expires_at > $6::timestamptz then g.expires_at end,
                                              case when g.due_at > $6::timestamptz then $6::timestamptz + interval '1 second' end) end as look_by,
               g.cost as full_cost, case when l.by_cost then g.cost else sign(g.cost) end as cost, l.rate, l.burst, l.concurrency, null::bigint as free, null::double precision as tokens, null::timestamptz as closed_until, null::timestamptz as asleep_until
        from given g
        cross join lim l
        where l.per_key and g.key is not null
        union all
        select null, s.key, s.name, null, null, false, 0, null, 0, 0, s.rate, s.burst, s.concurrency, s.free, s.tokens, s.closed_until, s.asleep_until
        from state s
        where s.per_key
    ) r
    window of_key as (partition by r.name, r.key)
), judged as materialized (
    select p.id, p.key, p.name, p.parked, p.no, p.full_cost,
           bool_and(p.free_ok and p.rate_ok and p.open) over (partition by p.name, p.key order by p.priority, p.due_at, p.id rows unbounded preceding) as fits,
           least(p.look_by,
                 case when p.behind then p.asleep_until
                      when p.closed_until > $6::timestamptz then p.closed_until
                      when p.free_ok then $6::timestamptz + make_interval(secs => greatest(least(p.cost, p.burst) - (p.tokens - p.before), 0) / nullif(p.rate, 0))
                      else $6::timestamptz + interval '10 minutes' end) as wake_at
    from (
        select q.*, coalesce(q.free - q.before >= least(q.cost, q.concurrency), true) as free_ok,
               coalesce(q.tokens - q.before + 1e-9 >= least(q.cost, q.burst), true) as rate_ok,
               not q.behind and not coalesce(q.closed_until > $6::timestamptz, false) as open
        from (
            select r.*, r.asleep_until is not null and exists (
                       select from sluice.live b
                       where b.queue = $1::text and b.limit_key = r.key and b.parked and (b.priority, b.due_at, b.id) < (r.priority, r.due_at, r.id)
                         and b.due_at <= $6::timestamptz + $12::interval
                         and (b.expires_at is null or b.expires_at > greatest($6::timestamptz, b.due_at))
                       order by b.priority, b.due_at, b.id
                       offset 0
                   ) as behind
            from pairs r
            where r.id is not null
            offset 0
        ) q
    ) p
), admitted as materialized (
    select u.id, u.key, u.parked, u.cost, u.no, bool_and(u.fits) as fits
    from (select g.id, g.key, g.parked, g.cost, g.no, true as fits from given g
          union all
          select j.id, j.key, j.parked, j.full_cost, j.no, j.fits from judged j) u
    group by u.id, u.key, u.parked, u.cost, u.no
), stopped as materialized (
    select p.id, p.parked, bool_and(p.free_ok and p.rate_ok) over (partition by p.name order by p.no rows unbounded preceding) as passes,
           case when p.free_ok then greatest(least(p.cost, p.burst) - (p.tokens - p.before), 0) / nullif(p.rate, 0) end as wait, p.no
    from (
        select u.*, coalesce(u.free - u.before >= least(u.cost, u.concurrency), true) as free_ok,
               coalesce(u.tokens - u.before + 1e-9 >= least(u.cost, u.burst), true) as rate_ok
        from (
            select a.id, a.parked, a.cost, a.no, s.name, s.rate, s.burst, s.concurrency, s.free, s.tokens,
                   sum(a.cost) over (partition by s.name order by a.no rows unbounded preceding) - a.cost as before
            from admitted a
            cross join state s
            where a.fits and not a.parked and not s.per_key
        ) u
    ) p
), moved as (
    update sluice.live l
    set parked = not l.parked, blocked_by = case when l.parked then null else l.id end, in_tenant_queue = false
    where l.id = any (array(select a.id from admitted a where a.fits = a.parked))
), tally as materialized (
    select w.key, coalesce(bool_or(not w.fits), false) as blocked, count(w.id) filter (where w.parked) as heads
    from (select a.key, a.fits, a.parked, a.id from admitted a where a.key is not null
          union all
          select d.key, null, null, null from due d) w
    group by w.key
), slept as materialized (
    -- A lane with admitted jobs stays due. Otherwise this claim would find them asleep.
    select j.name, j.key,
           case when j.key in (select a.key from admitted a where a.fits and a.parked and a.key is not null) then $6::timestamptz else min(j.wake_at) end as wake_at
    from judged j
    where not j.fits
    group by j.name, j.key
    union all
    -- Another transaction has locked a parked job of the lane. A later claim looks at it.
    select d.name, d.key, $6::timestamptz + interval '100 milliseconds'
    from due d
    join tally t on t.key = d.key
    where not t.blocked and t.heads < $8::integer
      and exists (
          select from sluice.live b
          where b.queue = $1::text and b.limit_key = d.key and b.parked and (b.expires_at is null or b.expires_at > greatest($6::timestamptz, b.due_at))
            and b.id not in (select h.id from heads h)
          order by b.priority, b.due_at, b.id
          offset 0
      )
), kept as (
    insert into sluice.limit_lane (name, key, queue, wake_at)
    select s.name, s.key, $1::text, s.wake_at from slept s
    order by s.name collate "C", s.key collate "C"
    on conflict (name, key, queue) do update set wake_at = excluded.wake_at
), emptied as (
    delete from sluice.limit_lane
    where ctid = any (array(
        select w.place
        from (
            select e.name, e.key, e.is_due, bool_or(e.blocked) over (partition by e.key) as blocked, max(e.heads) over (partition by e.key) as heads,
                   bool_or(e.sleeps) over (partition by e.key, e.name) as sleeps
            from (select d.name, d.key, true as is_due, null::boolean as blocked, null::bigint as heads, false as sleeps from due d
                  union all
                  select null, t.key, false, t.blocked, t.heads, false from tally t
                  union all
                  select s.name, s.key, false, null, null, true from slept s) e
        ) d
        cross join lateral (select l.ctid as place from sluice.limit_lane l where l.name = d.name and l.key = d.key and l.queue = $1::text offset 0) w
        where d.is_due and not d.sleeps and (d.blocked or d.heads < $8::integer)
    ))
)
select r.id, bool_and(r.fits), r.parked, bool_and(r.passes), case when min(r.wait) >= 0 then max(r.wait) end
from (select a.id, a.fits, a.parked, true as passes, null::double precision as wait, a.no from admitted a
      union all
      select s.id, true, s.parked, s.passes, case when not s.passes then coalesce(s.wait, -1) end, s.no from stopped s) r
group by r.id, r.parked, r.no
order by r.no
