-- Stores how far results were removed.
-- ?1 queue   ?2 outcome   ?3 ended at   ?4 now
insert into sluice_result_cursor (queue, outcome, upto) values (?1, ?2, ?3)
on conflict (queue, outcome) do update set upto = iif(upto <= ?4, max(upto, excluded.upto), excluded.upto)
