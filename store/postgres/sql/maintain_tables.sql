-- Lists the tables with their dead rows, their size with indexes, and whether this role may vacuum them. The tables with the
-- most dead rows come first.
select
    c.relname::text as name,
    coalesce(s.n_dead_tup, 0) as dead,
    pg_total_relation_size(c.oid) as bytes,
    pg_has_role(c.relowner, 'usage') or pg_has_role(d.datdba, 'usage')
        or case when current_setting('server_version_num')::integer >= 170000 then has_table_privilege(c.oid, 'maintain') else false end as allowed
from pg_class c
join pg_database d on d.datname = current_database()
left join pg_stat_all_tables s on s.relid = c.oid
where c.relnamespace = 'sluice'::regnamespace and c.relkind = 'r'
order by coalesce(s.n_dead_tup, 0) desc, c.relname
