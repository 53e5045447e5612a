-- Rows of lives that lack their job, or that are there twice. Only plain SQL, or damage, makes them. Reads all of them.
select (select count(*) from sluice_live l where not exists (select 1 from sluice_job j where j.seq = l.seq)) as live_without_job,
       (select count(*) from sluice_done d where not exists (select 1 from sluice_job j where j.seq = d.seq)) as done_without_job,
       (select count(*) from sluice_live l where exists (select 1 from sluice_done d where d.seq = l.seq and d.generation = l.generation)) as live_and_done
