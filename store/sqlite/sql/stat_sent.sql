-- Says that a holder added a slot. No row: it has added this or a later one before.
-- ?1 holder   ?2 slot
insert into sluice_stat_holder (holder, at) values (?1, ?2)
on conflict (holder) do update set at = excluded.at
where at < excluded.at
returning holder
