-- 0025 The history by when it ended: what is pruned, and nothing else, is looked at.
-- locks: done against writes, about a second for each million finished jobs.
-- works with programs from: 8
-- Where that is too long, make the index before this step, by the same statement with "concurrently" after "index".

create index if not exists done_ended on sluice.done (queue, outcome, finished_at) where requeued_at is null;
