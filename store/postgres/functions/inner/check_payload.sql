-- Refuses a payload that the settings of its queue do not allow.
create or replace function sluice._check_payload(queue text, payload json) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
declare
    settings record;
    bytes    integer := octet_length(convert_to(payload::text, 'UTF8'));
begin
    select q.payload_limit, q.payload_schema into settings from sluice.queue q where q.name = queue;
    if bytes > coalesce(settings.payload_limit, {{payload limit}}) then
        perform sluice._invalid('payload', format('%s bytes are more than the queue''s payload_limit of %s', bytes, coalesce(settings.payload_limit, {{payload limit}})));
    elsif settings.payload_schema <> '' then
        perform sluice._invalid('payload', format('queue %s has a payload_schema, which the database cannot check; enqueue through a program', queue));
    end if;
end
$function$;
