-- Lists the rights that Go programs need and that this role lacks. With excess, the statement lists rights to change
-- tables that programs only add to and that this role does not own. Missing tables are left out. A right to insert the columns
-- that the server does not number is enough.
-- $1 text[] tables that programs read and write   $2 text[] tables that programs only read   $3 text[] tables that programs only add to
select c.relname::text as name, p.privilege, false as excess
from pg_class c
join lateral (
    select unnest(case when c.relname = any($1::text[]) then '{select,insert,update,delete}'::text[]
                       when c.relname = any($3::text[]) then '{select,insert}'::text[]
                       else '{select}'::text[] end) as privilege
) p on not has_table_privilege(c.oid, p.privilege) and (p.privilege <> 'insert' or exists (
    select from pg_attribute a
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attidentity = '' and not has_column_privilege(c.oid, a.attnum, 'insert')))
where c.relnamespace = 'sluice'::regnamespace and c.relname = any($1::text[] || $2::text[] || $3::text[])
union all
select c.relname::text, p.privilege, true
from pg_class c
join unnest('{update,delete,truncate}'::text[]) as p(privilege) on has_table_privilege(c.oid, p.privilege)
where c.relnamespace = 'sluice'::regnamespace and c.relname = any($3::text[]) and not pg_has_role(c.relowner, 'usage')
union all
select p.proname || '(' || oidvectortypes(p.proargtypes) || ')', 'execute', false
from pg_proc p
where p.pronamespace = 'sluice'::regnamespace and p.proname = '_forget_audit' and not has_function_privilege(p.oid, 'execute')
order by excess, name, privilege
