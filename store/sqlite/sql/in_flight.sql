-- Counts the jobs in flight in a queue and its orphan runs, each up to a limit, along the indexes sluice_live_claimed
-- and sluice_live_away. SQLite uses the second index only if the statement repeats the index's condition word by word.
-- ?1 queue   ?2 limit
select (select count(*) from (select 1 from sluice_live where queue = ?1 and state = 'claimed' limit ?2 + 0))
     + (select count(*) from (select 1 from sluice_live where queue = ?1 and state in ('dispatched', 'uncertain') and state = 'dispatched' limit ?2 + 0))
     + (select count(*) from (select 1 from sluice_orphan_run where queue = ?1 limit ?2 + 0))
