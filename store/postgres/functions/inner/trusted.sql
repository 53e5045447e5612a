-- Returns whether the caller may change the tables anyway, like the owner and the role of Go programs.
create or replace function sluice._trusted() returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    return has_table_privilege(sluice._caller(), 'sluice.live', 'update');
end
$function$;
