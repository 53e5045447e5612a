-- 0016 Runs of ended jobs: whose they are, and what persons want of them.
-- works with programs from: 8
-- Those before do not let a job wait for its earlier run, and do not count such runs as in flight.

alter table sluice_stray_run add column tenant text not null default '';
alter table sluice_stray_run add column generation integer not null default 0;
alter table sluice_stray_run add column claimed_at integer;
-- The engine had it; one that was only intended may never come.
alter table sluice_stray_run add column started integer not null default 0 check (started in (0, 1));
-- A person let the job run beside it.
alter table sluice_stray_run add column beside integer not null default 0 check (beside in (0, 1));
-- A person wants it ended by force.
alter table sluice_stray_run add column terminate integer not null default 0 check (terminate in (0, 1));
update sluice_stray_run set tenant = coalesce((select j.tenant from sluice_job j where j.id = job_id), '');
create index sluice_stray_run_held on sluice_stray_run (queue, tenant);

-- It was in flight, and there is room now.
create trigger sluice_stray_run_gone after delete on sluice_stray_run
when old.tenant <> ''
begin
    insert into sluice_line_room values (old.queue, old.tenant);
end;
