-- Stores how far a claimed job has come.
-- $1 uuid id   $2 uuid token   $3 bytea checkpoint
update sluice.live set checkpoint = $3::bytea
where id = $1::uuid and token = $2::uuid and coalesce(state = 'claimed', false)
returning id
