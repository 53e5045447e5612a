-- owner: Takes back what a role may do in some queues, whatever it was.
create or replace function sluice.revoke_grants(
    role   text,
    queues text[] default null -- null: all of them
) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
begin
    if role is null then
        perform sluice._invalid('role', 'it is missing');
    end if;
    delete from sluice.queue_grant g
    using pg_roles r
    where r.rolname = revoke_grants.role and g.role = r.oid and (queues is null or g.queue = any (queues));
    perform sluice._apply_grants(role);
end
$function$;
