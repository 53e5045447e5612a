-- 0020 Checks that older SQLite libraries can carry out, such as Debian 12's shell: they know no octet_length.
-- works with programs from: 8
-- A column's check goes with the column, so each is made again under its name.

alter table sluice_queue add column engine_20 text not null default '' check (length(cast(engine_20 as blob)) <= 200);
alter table sluice_queue add column run_namespace_20 text not null default '' check (length(cast(run_namespace_20 as blob)) <= 200);
alter table sluice_queue add column run_type_20 text not null default '' check (length(cast(run_type_20 as blob)) <= 200);
alter table sluice_queue add column run_task_queue_20 text not null default '' check (length(cast(run_task_queue_20 as blob)) <= 200);
alter table sluice_queue add column run_ref_20 text not null default '' check (length(cast(run_ref_20 as blob)) <= 200);
update sluice_queue set engine_20 = engine, run_namespace_20 = run_namespace, run_type_20 = run_type,
    run_task_queue_20 = run_task_queue, run_ref_20 = run_ref;
alter table sluice_queue drop column engine;
alter table sluice_queue drop column run_namespace;
alter table sluice_queue drop column run_type;
alter table sluice_queue drop column run_task_queue;
alter table sluice_queue drop column run_ref;
alter table sluice_queue rename column engine_20 to engine;
alter table sluice_queue rename column run_namespace_20 to run_namespace;
alter table sluice_queue rename column run_type_20 to run_type;
alter table sluice_queue rename column run_task_queue_20 to run_task_queue;
alter table sluice_queue rename column run_ref_20 to run_ref;
