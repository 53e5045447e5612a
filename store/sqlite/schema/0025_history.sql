-- 0025 The history by when it ended, so that only what is pruned is looked at, and jobs by their keys and tenants.
-- works with programs from: 8

create index sluice_done_ended on sluice_done (queue, outcome, finished_at) where requeued_at is null;
create index sluice_job_by_key on sluice_job (key) where key is not null;
create index sluice_job_by_tenant on sluice_job (tenant) where tenant <> '';
