-- Lists roles that may select secrets of Sluice's tables and views and may write to none of the tables, including
-- public. Owners and superusers are left out. Each role has one row, which names one of the columns.
-- $1 text[] the tables and views that Sluice makes
select coalesce(r.rolname, 'public')::text as role, r.oid is null as everybody, min(s.name || '.' || s.column_name) as sees
from (
    select c.relname::text as name, x.attname::text as column_name, c.relowner as owner, g.grantee
    from pg_class c
    join pg_attribute x on x.attrelid = c.oid and x.attnum > 0 and not x.attisdropped
    cross join lateral (
        select a.grantee from aclexplode(c.relacl) a where a.privilege_type = 'SELECT'
        union
        select a.grantee from aclexplode(x.attacl) a where a.privilege_type = 'SELECT'
    ) g
    where c.relnamespace = 'sluice'::regnamespace and c.relname = any ($1::text[])
      and (c.oid, x.attname::text) not in (select o.relation, o.column_name from ({reader columns}) o)
) s
left join pg_roles r on r.oid = s.grantee
where s.grantee <> s.owner and not coalesce(r.rolsuper, false)
  and not exists (
    select from pg_class w cross join aclexplode(w.relacl) a
    where w.relnamespace = 'sluice'::regnamespace and w.relkind in ('r', 'p') and a.grantee = s.grantee
      and a.privilege_type in ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE'))
group by r.rolname, r.oid
order by everybody, role
