-- An invoice is sent, if it was not before.
-- $1 id   $2 now
update invoice
set status = 'SENT', sent_at = $2
where id = $1 and status = 'ISSUED'
