-- Who calls: the role of SET ROLE, else the one that logged in. The functions run as their owner, so that current_user
-- does not say.
create or replace function sluice._caller() returns name
language sql stable set search_path = pg_catalog, pg_temp as $function$
    select coalesce(nullif(current_setting('role', true), 'none'), session_user::text)::name
$function$;
