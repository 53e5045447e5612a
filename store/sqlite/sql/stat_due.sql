-- Lists counts of holders from before an instant that nobody has added up yet, the oldest first.
-- ?1 until   ?2 limit
select at, queue, holder, body from sluice_stat_part where at < ?1 order by at, queue, holder limit ?2 + 0
