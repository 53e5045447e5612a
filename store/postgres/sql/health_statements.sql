-- Lists the statements on Sluice's tables that took the most time in all, in milliseconds. {schema} is the schema of
-- the extension, whose columns have other names before PostgreSQL 13.
-- $1 integer limit
select
    (row ->> 'calls')::bigint as calls,
    coalesce(row ->> 'total_exec_time', row ->> 'total_time')::float8 as total,
    coalesce(row ->> 'mean_exec_time', row ->> 'mean_time')::float8 as mean,
    left(row ->> 'query', 1000) as query
from (
    select to_jsonb(s) as row
    from {schema}.pg_stat_statements s
    where s.dbid = (select d.oid from pg_database d where d.datname = current_database()) and s.query like '%sluice.%'
) statements
order by total desc
limit $1::integer
