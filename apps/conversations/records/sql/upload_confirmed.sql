-- Stores that the chain has a transaction. $1: the learning's id; $2: the block's number; $3: now.
update upload set status = 'confirmed', block_number = $2, updated_at = $3 where learning_id = $1 and status <> 'confirmed'
returning learning_id
