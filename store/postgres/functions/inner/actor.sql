-- Returns the actor for the audit: the name that the caller gives. For a caller that may not change the tables, the
-- function appends the caller's role.
create or replace function sluice._actor(named text) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    perform sluice._check_name('actor', named, 255);
    if coalesce(named, '') = '' then
        return sluice._caller();
    elsif sluice._trusted() then
        return named;
    end if;
    return format('%s (%s)', named, sluice._caller());
end
$function$;
