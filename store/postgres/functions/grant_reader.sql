-- owner: Lets people, dashboards and the command line read everything but payloads, results, checkpoints and tokens,
-- and change nothing. The function also revokes every wider right of the role to select from Sluice's tables.
create or replace function sluice.grant_reader(
    role text
) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
begin
    if sluice._writes(role) then
        perform sluice._invalid('role', format('%L may write to tables of Sluice, and would be no reader; take that back first, or make another role', role));
    end if;
    perform sluice._grant(role, 'read', '{*}');
end
$function$;
