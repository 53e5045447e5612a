-- Deletes and counts changes of limits, and makes the claim look at the parked jobs of their limit keys. A change
-- without a key stands for all keys of the limit, for example after an edit. The caller holds the lock of the limits.
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
