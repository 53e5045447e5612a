-- Records a right of a role in queues, and lets the role call the functions for it.
create or replace function sluice._grant(to_role text, what text, of_queues text[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    of_queue text;
begin
    if not exists (select from pg_roles r where r.rolname = to_role) then
        raise exception using errcode = '42704', message = format('role %L does not exist', to_role), hint = 'Make it with create role.';
    elsif coalesce(of_queues, '{}') = '{}' then
        perform sluice._invalid('queues', 'they are missing; ''*'' is every queue');
    end if;
    foreach of_queue in array of_queues loop
        if of_queue is null or of_queue <> '*' and of_queue !~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$' then
            perform sluice._invalid('queues', format('%L is no name of a queue', of_queue));
        end if;
        insert into sluice.queue_grant (role, may, queue)
        select r.oid::regrole, what, of_queue from pg_roles r where r.rolname = to_role
        on conflict do nothing;
    end loop;
    perform sluice._apply_grants(to_role);
end
$function$;
