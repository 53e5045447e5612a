-- Gives the nonce behind the last one that an account has used here. $1: the account.
select coalesce(max(nonce) + 1, 0) from upload where account = $1
