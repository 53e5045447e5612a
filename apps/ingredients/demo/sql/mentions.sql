-- What was found of each mention, in the order in which they were taken in.
select state, coalesce(ingredient, '') from ingredients.mention order by id
