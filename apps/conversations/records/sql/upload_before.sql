-- Lists transactions of an account that may not have arrived, before a nonce. $1: the account; $2: from this nonce on; $3: before this one; $4: how many at the most.
select raw_tx from upload where account = $1 and nonce >= $2 and nonce < $3 and status = 'tx_signed' order by nonce limit $4
