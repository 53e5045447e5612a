-- Lists the keys of jobs.
-- $1 uuid[] ids
select id, queue, key from sluice.job where id = any ($1::uuid[]) and key is not null order by id
