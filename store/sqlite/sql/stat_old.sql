-- Returns whether a bucket of a kind began before an instant, or the last bucket of a holder did.
-- ?1 every_s   ?2 before   ?3 before, of holders
select exists (select 1 from sluice_stat where every_s = ?1 and at < ?2)
    or exists (select 1 from sluice_stat_holder where at < ?3)
