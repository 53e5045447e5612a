-- Returns how far a walk goes that reads a number of unfinished and of finished jobs; null: to the end.
-- $1 uuid below (null: no bound)   $2 integer how many of each   $3 uuid from (null: no bound)
select (select l.id from sluice.live l where l.id < coalesce($1::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff') and l.id >= coalesce($3::uuid, '00000000-0000-0000-0000-000000000000') order by l.id desc limit 1 offset $2::integer - 1),
       (select d.id from sluice.done d where d.id < coalesce($1::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff') and d.id >= coalesce($3::uuid, '00000000-0000-0000-0000-000000000000') order by d.id desc limit 1 offset $2::integer - 1)
