-- Lists queues that were counted and no longer exist.
-- ?1 the queues that exist, as a JSON array
select queue from sluice_wave_count where queue not in (select value from json_each(?1))
