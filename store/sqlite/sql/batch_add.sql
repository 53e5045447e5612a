-- Changes the counts of a batch, and makes upkeep look at it.
-- ?1 batch   ?2 total   ?3 completed   ?4 dead   ?5 cancelled   ?6 whether a job has died
update sluice_batch_count
set total = total + ?2, completed = completed + ?3, dead = dead + ?4, cancelled = cancelled + ?5, died = max(died, ?6), changed = 1
where batch = ?1
