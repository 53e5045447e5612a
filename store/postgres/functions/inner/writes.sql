-- Returns whether a role holds a grant to write to a table of Sluice, as the roles of Go programs do.
create or replace function sluice._writes(of_role text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $function$
    select exists (
        select from pg_class c cross join aclexplode(c.relacl) a join pg_roles r on r.oid = a.grantee
        where c.relnamespace = 'sluice'::regnamespace and c.relkind in ('r', 'p') and r.rolname = of_role
          and a.privilege_type in ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE'))
$function$;
