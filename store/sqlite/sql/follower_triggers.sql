-- Lists the triggers that run the statements of followers.
select name, sql from sqlite_master where type = 'trigger' and name like 'sluice\_follow\_%' escape '\' order by name
