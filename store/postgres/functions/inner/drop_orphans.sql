-- Removes jobs that a claim locked and whose row in sluice.job somebody deleted.
create or replace function sluice._drop_orphans(ids uuid[], with_token uuid, by_holder text)
returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
begin
    if ids <> '{}' then
        execute {{orphans_drop.sql}} using ids, with_token, by_holder;
    end if;
end
$function$;
