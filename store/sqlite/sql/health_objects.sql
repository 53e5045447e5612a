-- Lists Sluice's tables, indexes, triggers and views that a statement made, and all triggers on Sluice's tables.
select type, name, tbl_name, sql from sqlite_master
where sql is not null and (name like 'sluice\_%' escape '\' or type = 'trigger' and tbl_name like 'sluice\_%' escape '\')
order by type, name
