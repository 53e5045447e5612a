-- Forgets what jobs waited for that have ended themselves.
-- ?1 seqs of jobs that have ended, as a JSON array
delete from sluice_after
where (after_seq, seq) in (
    select a.after_seq, a.seq from json_each(?1) e cross join sluice_after a indexed by sluice_after_waiting on a.seq = e.value
    where not exists (select 1 from sluice_live l where l.seq = a.seq))
