-- Lists a page of operations, the newest first.
-- ?1 before (an id, or longer than any)   ?2 limit
select version, body from sluice_operation where id < ?1 order by id desc limit ?2 + 0
