-- The store's clock, handed through the file: it answers only where Sluice's tables do.
-- ?1 now
select ?1 + 0 * exists (select 1 from sluice_queue)
