-- Decides what a mention means. $1 bigint mention; $2 uuid job; $3 int attempt; $4 text who decides.
select ingredients.match($1::bigint, $2::uuid, $3::integer, $4::text)
