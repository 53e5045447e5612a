-- Looks up how far an upload is. $1: the learning's id.
select status, ipfs_cid, coalesce(nonce, 0), coalesce(tx_hash, ''), raw_tx from upload where learning_id = $1
