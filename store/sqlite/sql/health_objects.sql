-- Lists the tables, indexes, triggers and views of a schema that a statement made.
select type, name, tbl_name, sql from sqlite_master where sql is not null and name like 'sluice\_%' escape '\' order by type, name
