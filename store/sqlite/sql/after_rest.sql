-- Finds the job that a job waits for, among the jobs of its `after`: the last by id that does not pass. All jobs behind
-- that job pass, so the end of another job changes nothing, unless it fails the waiting job. So each row is read once.
-- If the job may wait for one of them for another reason, all rows are read. The order is by id, as in PostgreSQL,
-- because a move to another store changes seq.
-- ?1 seq   ?2 the seq of the job that it waits for   ?3 whether the job may wait for it for another reason
select j.seq, a.after_id, l.seq is not null or a.rule = 'wait' and d.outcome is not null, d.outcome
from sluice_after a indexed by sluice_after_waiting
left join sluice_job j on j.id = a.after_id
left join sluice_live l on l.seq = j.seq
left join sluice_done d on d.seq = j.seq and l.seq is null
    and d.generation = (select max(e.generation) from sluice_done e where e.seq = j.seq)
where a.seq = ?1
  and a.after_id <= coalesce((select c.after_id from sluice_job b cross join sluice_after c on c.after_id = b.id and c.seq = ?1
      where b.seq = ?2 and not ?3), x'ffffffffffffffffffffffffffffffff')
  and (l.seq is not null or a.rule <> 'run' and d.outcome is not 'completed')
order by a.after_id desc
limit 1
