-- Gives a claim more time.
-- ?1 id   ?2 token   ?3 lease_until
update sluice_live set lease_until = ?3
where seq = (select seq from sluice_job where id = ?1) and token = ?2 and state = 'claimed'
