-- Lists the queues of a list that are stored.
-- $1 text[] names
select name from sluice.queue where name = any($1::text[])
