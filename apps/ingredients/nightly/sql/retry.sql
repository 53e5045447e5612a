-- Gives dead jobs of a queue a new life. $1 text queue; $2 text why; $3 int how many at the most; $4 boolean only say which.
select id::text from sluice.requeue_dead(queue => $1::text, reason => $2::text, batch => $3::integer, dry_run => $4::boolean, actor => 'nightly')
where state <> 'duplicate'
