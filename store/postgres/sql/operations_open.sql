-- Lists a page of unfinished operations, the newest first.
-- $1 uuid before (null: from the newest)   $2 integer limit
select version, body, now() from sluice.operation
where ended_at is null and id < coalesce($1::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
order by id desc
limit $2::integer
