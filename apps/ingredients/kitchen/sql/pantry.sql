-- Stores ingredients, and words with a meaning of their own. $1 text[] names; $2 text[] words, $3 text[] their kinds.
with names as (
    insert into ingredients.ingredient select unnest($1::text[]) on conflict do nothing
)
insert into ingredients.rule select * from unnest($2::text[], $3::text[]) on conflict do nothing
