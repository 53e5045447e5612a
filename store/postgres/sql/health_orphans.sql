-- Counts rows of lives without a job, and lives that are both unfinished and finished. Only plain SQL, or damage, makes
-- such rows. The statement reads all rows.
select (select count(*) from sluice.live l where not exists (select from sluice.job j where j.id = l.id)) as live_without_job,
       (select count(*) from sluice.done d where not exists (select from sluice.job j where j.id = d.id)) as done_without_job,
       (select count(*) from sluice.live l where exists (select from sluice.done d where d.id = l.id and d.generation = l.generation)) as live_and_done
