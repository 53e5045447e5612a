-- Queues that were counted and are there no more.
-- ?1 the queues that are there, as a JSON array
select queue from sluice_wave_count where queue not in (select value from json_each(?1))
