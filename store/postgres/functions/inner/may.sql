-- Returns whether the caller may work, produce or operate in a queue.
create or replace function sluice._may(what text, of_queue text) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    return sluice._trusted() or exists (
        select from sluice.queue_grant g
        join pg_roles r on r.oid = g.role
        where g.may = what and g.queue in (of_queue, '*') and pg_has_role(sluice._caller(), r.oid, 'usage'));
end
$function$;
