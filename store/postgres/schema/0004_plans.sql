-- 0004 What the audit has told of a queue's settings, and the changes of them that are to come.
-- locks: queue for a moment.
-- works with programs from: 3
-- What those of schema 3 change is told twice, the second time as changed by plain SQL; they carry out no plans.

alter table sluice.queue
    add column told  jsonb, -- the settings by their names; null: nothing was told
    add column plans jsonb; -- null: there are none
update sluice.queue q set told = (
    select a.after from sluice.audit a
    where a.object = 'queue' and a.object <> 'job' and a.name = q.name
    order by a.seq desc limit 1
);
