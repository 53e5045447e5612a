-- Deletes progress reports of attempts that have ended. The table holds a row for each running job with a report, and
-- for each such job that ended since the last deletion.
-- ?1 limit
delete from sluice_progress
where seq in (
    select p.seq
    from sluice_progress p
    where not exists (select 1 from sluice_live l where l.seq = p.seq and l.claimed_at = p.claimed_at and l.state = 'claimed')
    limit ?1 + 0
)
