-- Lists the tables with their size, their dead rows, and the seconds since the last vacuum and the last analyze; null:
-- never since the statistics began.
select
    c.relname::text as name,
    coalesce(s.n_live_tup, 0) as live,
    coalesce(s.n_dead_tup, 0) as dead,
    coalesce(s.n_mod_since_analyze, 0) as changed,
    pg_table_size(c.oid) as bytes,
    extract(epoch from clock_timestamp() - greatest(s.last_vacuum, s.last_autovacuum))::float8 as vacuumed,
    extract(epoch from clock_timestamp() - greatest(s.last_analyze, s.last_autoanalyze))::float8 as analyzed,
    coalesce((select o.option_value::boolean from pg_options_to_table(c.reloptions) o where o.option_name = 'autovacuum_enabled'), true) as autovacuum,
    array(select t.tgname::text from pg_trigger t where t.tgrelid = c.oid and not t.tgisinternal and t.tgenabled in ('D', 'R') order by 1) as disabled_triggers
from pg_class c
left join pg_stat_all_tables s on s.relid = c.oid
where c.relnamespace = 'sluice'::regnamespace and c.relkind = 'r'
order by c.relname
