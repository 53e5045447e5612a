-- Deletes reports of attempts that have ended. The table has a row for each running job that reports, and for each that has
-- ended since the last time.
-- $1 integer limit
delete from sluice.progress
where ctid = any (array(
    select p.ctid
    from sluice.progress p
    left join lateral (
        select w.state, w.claimed_at from sluice.live w where w.id = p.id offset 0
    ) l on true
    where (l.state = 'claimed' and l.claimed_at = p.claimed_at) is not true
    limit $1::integer
))
