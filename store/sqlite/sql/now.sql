-- Returns the given clock after a read of Sluice's tables, so that the statement fails if they do not answer.
-- ?1 now
select ?1 + 0 * exists (select 1 from sluice_queue)
