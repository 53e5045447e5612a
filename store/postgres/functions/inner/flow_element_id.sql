-- Returns the id of the job that a map made for an element, like ElementID of the Go package flow.
create or replace function sluice._flow_element_id(of_flow uuid, node text, element integer) returns uuid
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    return encode(substring(uuid_send(sluice._flow_id(of_flow, node || '/')) for 12) || int4send(element), 'hex')::uuid;
end
$function$;
