-- 0025 The history by when it ended, so that only what is pruned is looked at, and jobs by their keys and tenants.
-- locks: done and job against writes, about a second for each million of each.
-- works with programs from: 8
-- Where that is too long, make the indexes before this step, by the same statements with "concurrently" after "index".

create index if not exists done_ended on sluice.done (queue, outcome, finished_at) where requeued_at is null;
create index if not exists job_by_key on sluice.job (key, id) where key is not null;
create index if not exists job_by_tenant on sluice.job (tenant, id) where tenant <> '';
