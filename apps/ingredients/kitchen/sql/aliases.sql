-- Stores names for ingredients that are there. $1 text[] names; $2 text[] what they mean.
insert into ingredients.alias
select distinct on (1) ingredients.normal(a.alias), a.ingredient from unnest($1::text[], $2::text[]) as a(alias, ingredient)
order by 1, 2
on conflict do nothing
