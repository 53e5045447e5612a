-- Returns the name of this role if it only reads: it may select jobs, and write to no table of Sluice. Otherwise there
-- is no row.
select current_user::text
where has_column_privilege('sluice.live', 'id', 'select')
  and not exists (
    select from pg_class c
    where c.relnamespace = 'sluice'::regnamespace and c.relkind in ('r', 'p')
      and has_table_privilege(c.oid, 'insert, update, delete'))
