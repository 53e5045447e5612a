-- Counts the rows that keep a queue from being deleted, each up to a limit: unfinished jobs and orphan runs.
-- ?1 queue   ?2 limit
select (select count(*) from (select 1 from sluice_live where queue = ?1 and state in ('queued', 'claimed', 'dispatched', 'uncertain') limit ?2 + 0)),
       (select count(*) from (select 1 from sluice_orphan_run where queue = ?1 limit ?2 + 0))
