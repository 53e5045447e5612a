-- Lists the jobs of a list that are stored.
-- $1 uuid[] ids
select id from sluice.job where id = any ($1::uuid[])
