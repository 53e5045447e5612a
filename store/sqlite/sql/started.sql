-- How many jobs of a queue started since an instant, in the parts of its rate's window.
-- ?1 queue   ?2 since
select at, jobs from sluice_started where queue = ?1 and at > ?2 order by at
