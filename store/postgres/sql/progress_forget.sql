-- Deletes progress reports of attempts that have ended. The table holds a row for each running job with a report, and
-- for each such job that ended since the last deletion.
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
