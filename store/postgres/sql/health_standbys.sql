-- Lists the standbys of the server, and how many bytes of the log each has not yet written to its disk. A role that may
-- not see the standbys gets rows with an empty sync_state. Running backups and subscriptions are no standbys.
select coalesce(nullif(r.application_name, ''), host(r.client_addr), r.pid::text) as name, coalesce(r.sync_state, '') as sync_state,
       case when pg_is_in_recovery() or r.flush_lsn is null then 0
            else greatest(0, pg_wal_lsn_diff(pg_current_wal_lsn(), r.flush_lsn))::bigint end as behind
from pg_stat_replication r
where coalesce(r.state, '') not in ('backup', 'startup')
  and not exists (select from pg_replication_slots s where s.active_pid = r.pid and s.slot_type = 'logical')
order by name
