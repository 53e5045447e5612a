-- How far a walk through unfinished and through finished jobs goes that reads so many of each; null: to the end.
-- $1 uuid below (null: no bound)   $2 integer how many of each   $3 uuid from (null: no bound)
select (select l.id from sluice.live l where ($1::uuid is null or l.id < $1::uuid) and ($3::uuid is null or l.id >= $3::uuid) order by l.id desc limit 1 offset $2::integer - 1),
       (select d.id from sluice.done d where ($1::uuid is null or d.id < $1::uuid) and ($3::uuid is null or d.id >= $3::uuid) order by d.id desc limit 1 offset $2::integer - 1)
