-- What a job still waits for of that which it is to run after, the unfinished first: how each has ended, or that it is
-- gone from the history.
-- ?1 seq
select a.after_seq, j.id, l.seq is not null,
       (select d.outcome from sluice_done d where d.seq = a.after_seq order by d.generation desc limit 1)
from sluice_after a indexed by sluice_after_waiting
left join sluice_job j on j.seq = a.after_seq
left join sluice_live l on l.seq = a.after_seq
where a.seq = ?1
order by l.seq is null, j.id
