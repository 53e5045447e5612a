-- Notes an attempt that failed. $1 uuid job; $2 int attempt; $3 text who tried; $4 text why; $5 boolean whether it was the last.
select ingredients.note_failure($1::uuid, $2::integer, $3::text, $4::text, $5::boolean)
