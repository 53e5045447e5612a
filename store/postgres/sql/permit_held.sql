-- Counts the jobs of a claim that its holder still has.
-- $1 uuid token
select count(*) from sluice.live where state = 'claimed' and token = $1::uuid
