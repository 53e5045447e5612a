-- Lists the prepared transactions, replication slots and standbys that hold back vacuum. Slots also keep the
-- write-ahead log.
-- $1 integer limit
select * from (
    select 'prepared' as kind, p.gid as name, extract(epoch from clock_timestamp() - p.prepared)::float8 as seconds,
           age(p.transaction)::bigint as transactions, 0::bigint as wal_bytes, true as active, p.owner::text as owner
    from pg_prepared_xacts p
    where p.database = current_database()
    union all
    select 'slot', s.slot_name::text, 0, coalesce(age(coalesce(s.xmin, s.catalog_xmin)), 0),
           case when pg_is_in_recovery() or s.restart_lsn is null then 0
                else pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)::bigint end,
           s.active, ''
    from pg_replication_slots s
    union all
    select 'standby', coalesce(nullif(r.application_name, ''), r.pid::text), 0, age(r.backend_xmin), 0, true, r.pid::text
    from pg_stat_replication r
    where r.backend_xmin is not null
) held
order by kind, transactions desc, wal_bytes desc
limit $1::integer
