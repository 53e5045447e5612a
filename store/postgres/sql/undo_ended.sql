-- Gives lives that an undo has ended the end times of the lives before them.
-- $1 uuid[] ids
update sluice.done d
set finished_at = b.finished_at
from sluice.done b
where d.id = any ($1::uuid[]) and d.requeued_at is null and b.id = d.id and b.generation = d.generation - 1
