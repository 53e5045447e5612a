-- 0025 The history by when it ended: what is pruned, and nothing else, is looked at.
-- works with programs from: 8

create index sluice_done_ended on sluice_done (queue, outcome, finished_at) where requeued_at is null;
