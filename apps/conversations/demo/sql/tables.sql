-- Lists every table of the file.
select name from sqlite_master where type = 'table' order by name
