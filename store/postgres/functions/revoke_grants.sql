-- owner: Revokes all grants of a role for some queues, and the role's rights to read. A role that may write to the
-- tables keeps its right to select.
create or replace function sluice.revoke_grants(
    role   text,
    queues text[] default null -- null: all queues
) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    gone text[];
begin
    if role is null then
        perform sluice._invalid('role', 'it is missing');
    end if;
    with deleted as (
        delete from sluice.queue_grant g
        using pg_roles r
        where r.rolname = revoke_grants.role and g.role = r.oid and (queues is null or g.queue = any (queues))
        returning g.may
    )
    select array_agg(d.may) into gone from deleted d;
    if 'read' = any (gone) then
        perform sluice._apply_reads(role, false);
    end if;
    perform sluice._apply_grants(role);
end
$function$;
