-- What a job waits for of that which it is to run after: the last, by seq, that does not pass. All behind it pass: so the end of
-- any other changes nothing, unless it fails the job, and each is read once. Of a job that may wait for one of them for
-- another reason, all are read.
-- ?1 seq   ?2 the seq of the job that it waits for   ?3 whether that may be for another reason
select a.after_seq, j.id, l.seq is not null or a.rule = 'wait' and d.outcome is not null, d.outcome
from sluice_after a indexed by sluice_after_waiting
left join sluice_job j on j.seq = a.after_seq
left join sluice_live l on l.seq = a.after_seq
left join sluice_done d on d.seq = a.after_seq and l.seq is null
    and d.generation = (select max(e.generation) from sluice_done e where e.seq = a.after_seq)
where a.seq = ?1
  and a.after_seq <= coalesce((select c.after_seq from sluice_after c where c.after_seq = ?2 and c.seq = ?1 and not ?3), 9223372036854775807)
  and (l.seq is not null or a.rule <> 'run' and d.outcome is not 'completed')
order by a.after_seq desc
limit 1
