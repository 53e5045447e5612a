-- Notes what a requeued job waits for again: what is unfinished of that which it is to run after.
-- ?1 seq
insert or ignore into sluice_after (after_seq, seq)
select l.seq, ?1
from sluice_job w, json_each(w.after) given
join sluice_job j on j.id = unhex(replace(given.value, '-', ''))
join sluice_live l on l.seq = j.seq
where w.seq = ?1 and l.seq <> ?1
