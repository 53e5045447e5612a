-- Tells how long the jobs of a queue took, from their claim to their end, in microseconds. $1: the queue.
select finished_at - claimed_at from sluice_jobs where queue = $1 and state = 'completed'
