-- Deletes reports of attempts that have ended. The table has a row for each running job that reports, and for each that has
-- ended since the last time.
-- $1 integer limit
delete from sluice.progress
where ctid = any (array(
    select p.ctid
    from sluice.progress p
    left join lateral (
        select true as runs from sluice.live w where w.id = p.id and w.claimed_at = p.claimed_at and w.state = 'claimed' offset 0
    ) l on true
    where l.runs is null
    limit $1::integer
))
