-- Stores how far a claimed job has come.
-- ?1 id   ?2 token   ?3 checkpoint
update sluice_live set checkpoint = ?3
where seq = (select seq from sluice_job where id = ?1) and token = ?2 and state = 'claimed'
