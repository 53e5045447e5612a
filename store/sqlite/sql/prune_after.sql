-- Deletes the rows of deleted jobs that waited for others, and of jobs that waited for them. If the deleted job
-- completed, the rows of its waiting jobs go too; otherwise they stay while the waiting jobs live.
-- ?1 seqs of the jobs as a JSON array, before they are deleted
delete from sluice_after
where (after_id, seq) in (
    select a.after_id, a.seq from json_each(?1) e cross join sluice_after a indexed by sluice_after_waiting on a.seq = e.value
    union
    select a.after_id, a.seq from json_each(?1) e cross join sluice_job j on j.seq = e.value cross join sluice_after a on a.after_id = j.id
    where not exists (select 1 from sluice_live l where l.seq = a.seq)
       or (select d.outcome from sluice_done d where d.seq = e.value order by d.generation desc limit 1) = 'completed')
