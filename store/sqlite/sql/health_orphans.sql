-- Counts rows of lives without a job, and lives that are both unfinished and finished. Only plain SQL, or damage, makes
-- such rows. The statement reads all rows.
select (select count(*) from sluice_live l where not exists (select 1 from sluice_job j where j.seq = l.seq)) as live_without_job,
       (select count(*) from sluice_done d where not exists (select 1 from sluice_job j where j.seq = d.seq)) as done_without_job,
       (select count(*) from sluice_live l where exists (select 1 from sluice_done d where d.seq = l.seq and d.generation = l.generation)) as live_and_done
