-- Lists the starts of a queue with a rate since an instant: each instant and its number of jobs.
-- ?1 queue   ?2 since
select at, jobs from sluice_started where queue = ?1 and at > ?2 order by at
