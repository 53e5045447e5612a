-- Stores a signed transaction before it is sent. $1: the learning's id; $2: account; $3: nonce; $4: hash; $5: the transaction; $6: now.
update upload set status = 'tx_signed', account = $2, nonce = $3, tx_hash = $4, raw_tx = $5, updated_at = $6
where learning_id = $1 and status in ('ipfs_uploaded', 'tx_signed')
returning learning_id
