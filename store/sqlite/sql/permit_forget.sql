-- Forgets a permit of which nothing may begin any more.
-- ?1 queue   ?2 claimed_at   ?3 token
delete from sluice_permit where queue = ?1 and claimed_at = ?2 and token = ?3
