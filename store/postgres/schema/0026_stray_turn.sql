-- 0026 The runs of ended jobs by when these were cancelled, in an index that serves for nothing else.
-- locks: stray_run against writes, for a moment.
-- works with programs from: 8
-- Its columns are expressions, because by old statistics it looked as good as the indexes that find the runs of a job or a tenant.

drop index if exists sluice.stray_run_turn;
create index stray_run_turn on sluice.stray_run ((queue || ''), cancelled_at, uuid_send(job_id));
