-- Counts the jobs of a claim that its holder still has.
-- ?1 token
select count(*) from sluice_live where state = 'claimed' and token = ?1
