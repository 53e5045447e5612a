-- Which of some jobs are stored.
-- $1 uuid[] ids
select id from sluice.job where id = any ($1::uuid[])
