-- Records that a holder added a bucket. No row: the holder added this bucket or a later one before, or the bucket began
-- too long ago or begins too far ahead.
-- $1 text holder   $2 timestamptz bucket   $3 interval the largest age of the bucket   $4 interval how far ahead it may begin
insert into sluice.stat_holder as h (holder, at)
select $1::text, $2::timestamptz
where $2::timestamptz between now() - $3::interval and now() + $4::interval
on conflict (holder) do update set at = excluded.at
where h.at < excluded.at
returning h.holder
