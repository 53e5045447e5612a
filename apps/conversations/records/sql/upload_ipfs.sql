-- Stores that a learning is in IPFS. $1: its id; $2: CID; $3: now.
insert into upload (learning_id, status, ipfs_cid, created_at, updated_at) values ($1, 'ipfs_uploaded', $2, $3, $3)
on conflict (learning_id) do nothing
