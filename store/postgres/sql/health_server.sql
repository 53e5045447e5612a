-- Reads the settings and the load of the server and the database, as one row. The number connections counts the whole
-- server. A limit of 0 means no limit.
select
    current_setting('server_version') as version,
    clock_timestamp() as now,
    pg_is_in_recovery() as standby,
    current_setting('transaction_read_only') = 'on' as read_only,
    (select s.source from pg_settings s where s.name = 'default_transaction_read_only') as read_only_source,
    current_user::text as role,
    r.rolsuper as superuser,
    pg_has_role(current_user, 'pg_read_all_stats', 'usage') as sees_all,
    current_database()::text as database,
    (select coalesce(max(m.version), 0) from sluice.migration m) as schema_version,
    (select extract(epoch from clock_timestamp() - min(m.applied_at)) from sluice.migration m)::float8 as schema_age,
    (select coalesce(sum(b.numbackends), 0) from pg_stat_database b)::bigint as connections,
    current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
        - coalesce(current_setting('reserved_connections', true), '0')::bigint as connection_limit,
    (select count(*) from pg_stat_activity a where a.usesysid = r.oid) as role_connections,
    greatest(r.rolconnlimit, 0)::bigint as role_limit,
    (select b.numbackends from pg_stat_database b where b.datid = d.oid)::bigint as database_connections,
    greatest(d.datconnlimit, 0)::bigint as database_limit,
    current_setting('fsync') = 'on' as fsync,
    current_setting('full_page_writes') = 'on' as full_page_writes,
    current_setting('synchronous_commit') as synchronous_commit,
    (select s.source from pg_settings s where s.name = 'synchronous_commit') as synchronous_commit_source,
    current_setting('synchronous_standby_names') as synchronous_standbys,
    coalesce(current_setting('sluice.throwaway', true), '') in ('on', 'true', 'yes', '1') as throwaway,
    current_setting('autovacuum') = 'on' as autovacuum,
    current_setting('track_counts') = 'on' as track_counts,
    age(d.datfrozenxid)::bigint as transaction_age,
    mxid_age(d.datminmxid)::bigint as multixact_age,
    pg_notification_queue_usage() as notification_queue_used
from pg_roles r, pg_database d
where r.rolname = current_user and d.datname = current_database()
