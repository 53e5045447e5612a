-- Deletes buckets of a kind that began before an instant, the oldest first.
-- ?1 every_s   ?2 before   ?3 limit
delete from sluice_stat
where rowid in (select rowid from sluice_stat where every_s = ?1 and at < ?2 order by at limit ?3 + 0)
