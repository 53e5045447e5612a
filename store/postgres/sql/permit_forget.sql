-- Forgets a permit of which nothing may begin any more.
-- $1 text queue   $2 timestamptz claimed_at   $3 uuid token
delete from sluice.permit where queue = $1::text and claimed_at = $2::timestamptz and token = $3::uuid
