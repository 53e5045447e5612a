-- Lets a role select the columns that readers may see, or revokes that right. The function also revokes any wider right
-- to select from these tables, but never from a role that writes.
create or replace function sluice._apply_reads(to_role text, may boolean) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    t record;
begin
    for t in execute {{reader columns}} loop
        if not sluice._writes(to_role) then
            execute format('revoke select on sluice.%I from %I', t.name, to_role);
        end if;
        if may then
            execute format('grant select (%s) on sluice.%I to %I', t.columns, t.name, to_role);
        end if;
    end loop;
end
$function$;
