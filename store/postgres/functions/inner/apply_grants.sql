-- Lets a role call the functions and select the columns of its grants, and revokes its right to call the other
-- functions for clients.
create or replace function sluice._apply_grants(to_role text) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    f record;
    reads boolean := exists (select from sluice.queue_grant g join pg_roles r on r.oid = g.role where r.rolname = to_role and g.may = 'read');
    any_left boolean := reads;
begin
    for f in
        select p.oid::regprocedure::text as signature,
               exists (select from sluice.queue_grant g join pg_roles r on r.oid = g.role where r.rolname = to_role and g.may = w.may) as may
        from (values
{{granted functions}}
        ) as w(may, name)
        join pg_proc p on p.proname = w.name
        join pg_namespace n on n.oid = p.pronamespace and n.nspname = 'sluice'
        order by w.may, w.name
    loop
        any_left := any_left or f.may;
        if f.may then
            execute format('grant execute on function %s to %I', f.signature, to_role);
        else
            execute format('revoke execute on function %s from %I', f.signature, to_role);
        end if;
    end loop;
    if reads then
        perform sluice._apply_reads(to_role, true);
    end if;
    if any_left then
        execute format('grant usage on schema sluice to %I', to_role);
    elsif not sluice._writes(to_role) then
        execute format('revoke usage on schema sluice from %I', to_role);
    end if;
end
$function$;
