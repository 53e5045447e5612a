-- Reads how far limit keys use up a limit per key, in the given order: the jobs in flight or their costs, parked jobs,
-- tokens of the rate, and until when the key is closed.
-- $1 text name of the limit   $2 text[] keys (null: keys that are closed or have parked jobs, by name)   $3 integer limit
-- $4 integer the highest count
with of as materialized (
    select n.by_cost from sluice.named_limit n where n.name = $1::text
), sharing as materialized (
    select q.name as queue from sluice.queue q where q.limits <> '' and $1::text = any (string_to_array(q.limits, ','))
), listed as materialized (
    select g.key, g.no from unnest($2::text[]) with ordinality as g(key, no)
    union all
    (select k.key, 0 from (
        select c.key from sluice.limit_key c where c.name = $1::text and c.closed_until > now()
        union
        select l.key from sluice.limit_lane l where l.name = $1::text
          and (select true from sluice.live p where p.queue = l.queue and p.limit_key = l.key and p.parked order by p.priority, p.due_at, p.id limit 1)
          and l.queue in (select s.queue from sharing s)
     ) k
     where $2::text[] is null
     order by k.key collate "C"
     limit $3::integer)
)
select w.key, least(f.units + o.units, $4::integer), p.jobs, coalesce(k.tokens, 0), k.filled_at, k.closed_until, clock_timestamp()
from listed w
left join lateral (
    select s.tokens, s.filled_at, s.closed_until from sluice.limit_key s where s.name = $1::text and s.key = w.key offset 0
) k on true
cross join lateral (
    select coalesce(sum(case when (select by_cost from of) then c.cost else 1 end), 0) as units
    from (select h.cost from sluice.live h
          where h.limit_key = w.key and h.limit_key is not null and h.state in ('claimed', 'dispatched')
            and h.queue in (select s.queue from sharing s)
          limit $4::integer) c
) f
cross join lateral (
    select coalesce(sum(case when (select by_cost from of) then r.cost else 1 end), 0) as units
    from sharing s
    cross join lateral (select h.cost from sluice.orphan_run h where h.queue = s.queue and h.limit_key = w.key limit $4::integer) r
) o
cross join lateral (
    select count(*) as jobs
    from (select from sharing s
          cross join lateral (select from sluice.live h where h.queue = s.queue and h.limit_key = w.key and h.parked limit $4::integer) h
          limit $4::integer) c
) p
order by w.no, w.key collate "C"
