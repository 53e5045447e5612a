-- Lists the triggers, rules and policies on Sluice's tables, and the views and tables in Sluice's schema, that no
-- migration of Sluice made. The triggers with which a move keeps a database closed are Sluice's, too.
-- $1 text[] triggers of the migrations, as TABLE.TRIGGER   $2 text[] tables and views of the migrations
select f.kind, f.name, f.on_table, f.definition
from (
    select 'trigger' as kind, t.tgname::text as name, c.relname::text as on_table, pg_get_triggerdef(t.oid) as definition
    from pg_trigger t
    join pg_class c on c.oid = t.tgrelid
    where c.relnamespace = 'sluice'::regnamespace and not t.tgisinternal and c.relname || '.' || t.tgname <> all($1::text[])
      and not (to_regclass('sluice.moved') is not null and t.tgfoid = coalesce(to_regproc('sluice.refuse_moved')::oid, 0))
    union all
    select 'rule', r.rulename::text, c.relname::text, pg_get_ruledef(r.oid)
    from pg_rewrite r
    join pg_class c on c.oid = r.ev_class
    where c.relnamespace = 'sluice'::regnamespace and not (c.relkind in ('v', 'm') and r.rulename = '_RETURN')
    union all
    select 'policy', p.polname::text, c.relname::text, ''
    from pg_policy p
    join pg_class c on c.oid = p.polrelid
    where c.relnamespace = 'sluice'::regnamespace
    union all
    select case c.relkind when 'v' then 'view' when 'm' then 'materialized view' else 'table' end, c.relname::text, '', ''
    from pg_class c
    where c.relnamespace = 'sluice'::regnamespace and c.relkind in ('v', 'm', 'r', 'p', 'f') and c.relname <> all($2::text[])
) f
order by f.kind, f.on_table, f.name
