-- Lists the tables, indexes, triggers and views of a schema that a statement made, and everybody's triggers on our tables.
select type, name, tbl_name, sql from sqlite_master
where sql is not null and (name like 'sluice\_%' escape '\' or type = 'trigger' and tbl_name like 'sluice\_%' escape '\')
order by type, name
