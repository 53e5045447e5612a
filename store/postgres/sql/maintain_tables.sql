-- Lists the tables with their dead and other rows, their size with indexes, and whether this role may vacuum them. The
-- tables with the most dead rows come first.
-- $1 bigint least dead rows
select
    c.relname::text as name,
    pg_stat_get_dead_tuples(c.oid) as dead,
    pg_stat_get_live_tuples(c.oid) as live,
    pg_total_relation_size(c.oid) as bytes,
    pg_has_role(c.relowner, 'usage') or pg_has_role(d.datdba, 'usage')
        or case when current_setting('server_version_num')::integer >= 170000 then has_table_privilege(c.oid, 'maintain') else false end as allowed
from pg_class c
join pg_database d on d.datname = current_database()
where c.relnamespace = 'sluice'::regnamespace and c.relkind = 'r' and pg_stat_get_dead_tuples(c.oid) >= $1::bigint
order by pg_stat_get_dead_tuples(c.oid) desc, c.relname
