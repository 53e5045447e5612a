-- How many jobs of a claim its holder still has.
-- ?1 token
select count(*) from sluice_live where state = 'claimed' and token = ?1
