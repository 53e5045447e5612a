-- All parties of a payment were told.
-- $1 id   $2 now   $3 status before   $4 status after
update payment
set status = $4, processing_at = $2
where id = $1 and status = $3
