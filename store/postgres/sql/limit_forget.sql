-- Deletes limit keys without state, and changes of limit keys that no claim has read for 10 minutes. A claim looks at
-- the parked jobs of each limit key at least that often, even without a change.
-- $1 integer limit
with idle as (
    delete from sluice.limit_key where ctid = any (array(select k.ctid from sluice.limit_key k where k.idle_from < now() order by k.idle_from limit $1::integer))
)
delete from sluice.limit_change
where ctid = any (array(
    select c.place
    from sluice.named_limit n
    cross join lateral (
        select h.ctid as place from sluice.limit_change h where h.name = n.name and h.at < now() - interval '10 minutes' order by h.at limit $1::integer
    ) c
    limit $1::integer
))
