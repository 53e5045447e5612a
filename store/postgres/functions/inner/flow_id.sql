-- Returns the id of a job of a flow, which follows from the flow's id, like NodeID of the Go package flow.
create or replace function sluice._flow_id(of_flow uuid, node text) returns uuid
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    id bytea := substring(uuid_send(of_flow) for 6) || substring(sha256(uuid_send(of_flow) || convert_to(node, 'UTF8')) for 10);
begin
    id := set_byte(id, 6, get_byte(id, 6) & 15 | 112);
    return encode(set_byte(id, 8, get_byte(id, 8) & 63 | 128), 'hex')::uuid;
end
$function$;
