-- Lists what this role may not do with our tables, though programs do it. One that is not there is not listed.
-- $1 text[] tables that programs read and write   $2 text[] those that they only read
select c.relname::text as name, p.privilege
from pg_class c
join lateral (
    select unnest(case when c.relname = any($1::text[]) then '{select,insert,update,delete}'::text[] else '{select}'::text[] end) as privilege
) p on not has_table_privilege(c.oid, p.privilege)
where c.relnamespace = 'sluice'::regnamespace and (c.relname = any($1::text[]) or c.relname = any($2::text[]))
order by c.relname, p.privilege
