-- Returns the jobs that an earlier claim with this token got, in case its answer was lost, in the order of claims.
-- ?1 token
select seq from sluice_live where state = 'claimed' and token = ?1 order by priority, due_at, seq
