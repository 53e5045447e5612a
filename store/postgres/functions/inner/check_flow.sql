-- Refuses a flow that breaks a rule about the flow itself. Other functions check its nodes.
create or replace function sluice._check_flow(flow json) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
declare
    unknown  text;
    nodes    integer := case json_typeof(flow -> 'nodes') when 'array' then json_array_length(flow -> 'nodes') else 0 end;
    deadline timestamptz;
begin
    select k into unknown from json_object_keys(flow) as k where k not in ('id', 'name', 'deadline', 'nodes') limit 1;
    if unknown is not null then
        perform sluice._invalid('flow: ' || left(unknown, 40), 'a flow has no such field');
    elsif coalesce(octet_length(flow ->> 'name'), 0) not between 1 and {{max label bytes}} then
        perform sluice._invalid('flow: name', format('%L must have 1 to {{max label bytes}} bytes', left(flow ->> 'name', 40)));
    elsif nodes not between 1 and {{max nodes}} then
        perform sluice._invalid('flow: nodes', format('%s nodes must be 1 to {{max nodes}}; a map makes up to {{max after}} jobs of one node', nodes));
    elsif exists (select from json_array_elements(flow -> 'nodes') as node where json_typeof(node) <> 'object') then
        perform sluice._invalid('flow: nodes', 'each must be an object');
    end if;
    begin
        deadline := (flow ->> 'deadline')::timestamptz;
        perform (flow ->> 'id')::uuid;
    exception when data_exception then
        perform sluice._invalid('flow', sqlerrm);
    end;
    if deadline <= clock_timestamp() then
        perform sluice._invalid('flow: deadline', 'it has passed');
    end if;
    perform sluice._check_name('flow: name', flow ->> 'name', {{max label bytes}});
end
$function$;
