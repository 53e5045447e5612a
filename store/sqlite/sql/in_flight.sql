-- Counts what is in flight in a queue, up to a limit.
-- ?1 queue   ?2 limit
select (select count(*) from (select 1 from sluice_live where queue = ?1 and state = 'claimed' limit ?2))
     + (select count(*) from (select 1 from sluice_live where queue = ?1 and state = 'dispatched' limit ?2))
