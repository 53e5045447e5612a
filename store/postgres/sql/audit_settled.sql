-- Returns the last audit entry that this statement sees, and the clock. Writers are the transactions that may still add
-- entries: they hold the lock that every insert takes before it draws a seq. Waits counts the given transactions that
-- still hold it. A transaction changes its name when it is prepared, so each prepared transaction counts as given.
-- $1 text[] transactions to wait for
select
    coalesce((select max(a.seq) from sluice.audit a), 0) as last,
    clock_timestamp() as now,
    coalesce(array_agg(distinct l.virtualtransaction), '{}') as writers,
    count(*) filter (where l.virtualtransaction = any($1::text[]) or cardinality($1::text[]) > 0 and l.virtualtransaction like '-1/%') as waits
from pg_locks l
where l.locktype = 'relation' and l.relation = 'sluice.audit'::regclass and l.mode = 'RowExclusiveLock'
  and l.database = (select d.oid from pg_database d where d.datname = current_database())
