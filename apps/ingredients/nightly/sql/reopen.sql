-- Opens the mentions of jobs again. $1 uuid[] jobs; $2 text why; $3 text who.
select ingredients.reopen($1::uuid[], $2::text, $3::text)
