-- Stores the counts of a holder for a bucket and a queue.
-- ?1 bucket   ?2 queue   ?3 holder   ?4 body
insert into sluice_stat_part (at, queue, holder, body) values (?1, ?2, ?3, ?4)
on conflict (at, queue, holder) do nothing
