-- Refuses a result or a checkpoint that is larger than the store keeps, or nested too deep.
create or replace function sluice._check_result(argument text, given json) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    if octet_length(given::text) > {{max result bytes}} then
        perform sluice._invalid(argument, format('%s bytes are more than the {{max result bytes}} that a store keeps; keep it elsewhere, and store where', octet_length(given::text)));
    end if;
    perform sluice._check_depth(argument, given);
end
$function$;
