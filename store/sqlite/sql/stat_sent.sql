-- Records that a holder added a bucket. No row: the holder added this bucket or a later one before.
-- ?1 holder   ?2 bucket
insert into sluice_stat_holder (holder, at) values (?1, ?2)
on conflict (holder) do update set at = excluded.at
where at < excluded.at
returning holder
