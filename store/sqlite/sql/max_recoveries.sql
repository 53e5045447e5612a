-- Reads how many lost holders make upkeep bury a job of a queue.
-- ?1 queue
select max_recoveries from sluice_queue where name = ?1
