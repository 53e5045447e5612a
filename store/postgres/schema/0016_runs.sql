-- 0016 Runs of ended jobs: whose they are, and what persons want of them.
-- locks: stray_run, for a moment.
-- works with programs from: 8
-- Those before do not let a job wait for its earlier run, and do not count such runs as in flight.

alter table sluice.stray_run
    add column tenant     text    not null default '',
    add column generation integer not null default 0,
    add column claimed_at timestamptz,
    add column started    boolean not null default false, -- the engine had it; one that was only intended may never come
    add column beside     boolean not null default false, -- a person let the job run beside it
    add column terminate  boolean not null default false; -- a person wants it ended by force
update sluice.stray_run s set tenant = j.tenant from sluice.job j where j.id = s.job_id;
create index stray_run_held on sluice.stray_run (queue, tenant);

-- Those that are made next take one argument more.
drop function if exists sluice.requeue(uuid[], text, text, uuid);
drop function if exists sluice._requeue(uuid[], text, text, uuid);
