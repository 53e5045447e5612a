-- Lists a page of unfinished operations, the newest first.
-- ?1 before (an id, or longer than any)   ?2 limit
select version, body from sluice_operation where ended_at is null and id < ?1 order by id desc limit ?2 + 0
