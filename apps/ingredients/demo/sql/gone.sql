-- Whether a process has no connection any more. $1 text the name that its connections have.
select not exists (select from pg_stat_activity where application_name = $1::text)
