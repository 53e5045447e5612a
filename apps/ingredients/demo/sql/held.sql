-- The jobs that a process holds. $1 text its number, which is in its holder's name: host:pid:nonce.
select id::text from sluice.live where state = 'claimed' and split_part(holder, ':', 2) = $1::text
