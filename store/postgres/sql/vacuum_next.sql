-- Names the table with the most dead rows that this role may vacuum, if that is worth it: a fifth of its rows are dead.
-- $1 bigint least dead rows   $2 bigint most bytes with indexes
select t.name
from (select c.oid, c.relname::text as name, c.relowner,
             pg_stat_get_dead_tuples(c.oid) as dead, pg_stat_get_live_tuples(c.oid) as live
      from pg_class c
      where c.relnamespace = 'sluice'::regnamespace and c.relkind = 'r'
      offset 0) t
cross join pg_database d
where d.datname = current_database() and t.dead >= $1::bigint and t.dead >= t.live / 4
  and pg_total_relation_size(t.oid) <= $2::bigint
  and (pg_has_role(t.relowner, 'usage') or pg_has_role(d.datdba, 'usage')
       or case when current_setting('server_version_num')::integer >= 170000 then has_table_privilege(t.oid, 'maintain') else false end)
order by t.dead desc
limit 1
