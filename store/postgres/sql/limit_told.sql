-- Takes in what was told of the limit keys of limits, and lets the claim look at their parked jobs. A change without a key is of
-- all keys of the limit, such as when somebody changed it. The lock of the limits is held.
-- $1 text[] names of limits   $2 integer limit
with told as (
    delete from sluice.limit_change
    where ctid = any (array(
        select c.place
        from unnest($1::text[]) as n(name)
        cross join lateral (select h.ctid as place from sluice.limit_change h where h.name = n.name order by h.at limit $2::integer) c
        limit $2::integer
    ))
    returning name, key
), given as materialized (
    select distinct name, key from told
), lanes as materialized (
    select l.place
    from given g
    cross join lateral (select w.ctid as place from sluice.limit_lane w where w.name = g.name and w.key = g.key offset 0) l
    union all
    select w.ctid from sluice.limit_lane w where w.name in (select g.name from given g where g.key is null)
), woken as (
    update sluice.limit_lane set wake_at = '-infinity' where ctid = any (array(select place from lanes)) and wake_at <> '-infinity'
)
select count(*) from told
