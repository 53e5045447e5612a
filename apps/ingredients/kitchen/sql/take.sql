-- Takes mentions in. $1 text[] sources; $2 text[] raw texts; $3 int[] attempts that meet an outage.
select ingredients.take($1::text[], $2::text[], $3::integer[])
