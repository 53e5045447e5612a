-- Whether a process has written the effect of a job, and not committed it. $1 text the name that its connections have.
select exists (
    select from pg_stat_activity
    where application_name = $1::text and state = 'idle in transaction' and query like '%select ingredients.match($1%')
