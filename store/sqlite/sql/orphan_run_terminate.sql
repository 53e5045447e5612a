-- Marks runs of an ended job, so that upkeep ends them by force.
-- ?1 job
update sluice_orphan_run set terminate = 1 where job_id = ?1 and not terminate returning queue, generation, engine, ref
