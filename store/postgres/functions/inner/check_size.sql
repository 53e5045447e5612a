-- Refuses a batch size outside 1 to 10,000.
create or replace function sluice._check_size(batch integer) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    if batch is null or batch < 1 or batch > 10000 then
        perform sluice._invalid('batch', format('%s must be from 1 to 10000', coalesce(batch::text, 'null')));
    end if;
end
$function$;
