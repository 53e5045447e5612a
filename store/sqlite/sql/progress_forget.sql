-- Deletes reports of attempts that have ended. The table has a row for each running job that reports, and for each that has
-- ended since the last time.
-- ?1 limit
delete from sluice_progress
where seq in (
    select p.seq
    from sluice_progress p
    where not exists (select 1 from sluice_live l where l.seq = p.seq and l.claimed_at = p.claimed_at and l.state = 'claimed')
    limit ?1 + 0
)
