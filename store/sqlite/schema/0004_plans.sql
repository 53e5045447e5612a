-- 0004 What the audit has told of a queue's settings, and the changes of them that are to come.
-- works with programs from: 3
-- What those of schema 3 change is told twice, the second time as changed by plain SQL; they carry out no plans.

alter table sluice_queue add column told text;  -- the settings by their names, as JSON; null: nothing was told
alter table sluice_queue add column plans text; -- as JSON; null: there are none
update sluice_queue set told = (
    select a.after from sluice_audit a
    where a.object = 'queue' and a.object <> 'job' and a.name = sluice_queue.name
    order by a.seq desc limit 1
);
