-- Finds the job at which a page ends that looks at a number of unfinished and of finished jobs; no row: there are fewer
-- of both.
-- ?1 below (seq)   ?2 how many of each   ?3 from (seq)
select seq, id from sluice_job
where seq = (select max(seq) from (
    select seq from (select seq from sluice_live where seq < ?1 and seq >= ?3 order by seq desc limit 1 offset ?2 - 1)
    union all
    select seq from (select seq from sluice_done where seq < ?1 and seq >= ?3 order by seq desc limit 1 offset ?2 - 1)))
