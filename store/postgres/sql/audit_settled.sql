-- Tells the last entry of the audit that this statement sees, the clock, which transactions may still add entries, as they
-- hold the lock that every insert takes before it draws a seq, and how many of those that were known before still do. A
-- prepared transaction has another name than before it was prepared, so each of them counts as known.
-- $1 text[] transactions that are waited for
select
    coalesce((select max(a.seq) from sluice.audit a), 0) as last,
    clock_timestamp() as now,
    coalesce(array_agg(distinct l.virtualtransaction), '{}') as writers,
    count(*) filter (where l.virtualtransaction = any($1::text[]) or cardinality($1::text[]) > 0 and l.virtualtransaction like '-1/%') as waits
from pg_locks l
where l.locktype = 'relation' and l.relation = 'sluice.audit'::regclass and l.mode = 'RowExclusiveLock'
  and l.database = (select d.oid from pg_database d where d.datname = current_database())
