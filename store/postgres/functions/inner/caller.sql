-- Returns the role of the caller: the role of SET ROLE, or else the role that logged in. The functions run as their
-- owner, so current_user does not name the caller.
create or replace function sluice._caller() returns name
language sql stable set search_path = pg_catalog, pg_temp as $function$
    select coalesce(nullif(current_setting('role', true), 'none'), session_user::text)::name
$function$;
