-- Lists the transactions of this database with their sessions, the oldest first. A vacuum is left out, because it holds
-- nothing back.
-- $1 integer limit
select
    a.pid,
    coalesce(a.usename, '')::text as role,
    coalesce(a.application_name, '') as application,
    coalesce(host(a.client_addr), '') as address,
    coalesce(a.state, '') as state,
    a.xact_start as since,
    extract(epoch from clock_timestamp() - a.xact_start)::float8 as age,
    a.backend_xmin is not null or a.backend_xid is not null as holds_back,
    left(coalesce(a.query, ''), 1000) as query
from pg_stat_activity a
where a.datname = current_database() and a.pid <> pg_backend_pid() and a.xact_start is not null
    and a.backend_type = 'client backend'
    and not exists (select from pg_stat_progress_vacuum v where v.pid = a.pid)
order by a.xact_start
limit $1::integer
