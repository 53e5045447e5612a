-- What a job waits for of that which it is to run after: the last, by id, that does not pass. All behind it pass: so the end of
-- any other changes nothing, unless it fails the job, and each is read once. Of a job that may wait for one of them for
-- another reason, all are read. The order is by id, as in PostgreSQL, because a move to another store numbers jobs anew.
-- ?1 seq   ?2 the seq of the job that it waits for   ?3 whether that may be for another reason
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
