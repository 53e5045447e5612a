-- Deletes a permit whose jobs have all begun, or never will.
-- $1 text queue   $2 timestamptz claimed_at   $3 uuid token
delete from sluice.permit where queue = $1::text and claimed_at = $2::timestamptz and token = $3::uuid
