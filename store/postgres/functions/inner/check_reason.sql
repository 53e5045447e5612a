-- Refuses an act without a reason, or with one that is too long.
create or replace function sluice._check_reason(reason text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    if coalesce(btrim(reason), '') = '' then
        perform sluice._invalid('reason', 'it is missing; it goes to the audit');
    elsif octet_length(reason) > {{max error bytes}} then
        perform sluice._invalid('reason', format('%s bytes are more than {{max error bytes}}', octet_length(reason)));
    end if;
end
$function$;
