-- Gives a life that an undo is about to end the state and figures of the life before it.
-- ?1 seq
update sluice_live
set (due_at, claimed_at, dispatched_at, attempts, releases, recoveries, holder, ref, error) =
    (select b.due_at, b.claimed_at, b.dispatched_at, b.attempts, b.releases, b.recoveries, b.holder, b.ref, b.error
     from sluice_done b where b.seq = sluice_live.seq and b.generation = sluice_live.generation - 1)
where seq = ?1
