-- Returns whether a batch is open, and why it is paused.
-- ?1 id
select closed_at is null, paused from sluice_batch where id = ?1
