-- Returns the names of the nodes in a node's `after`, and refuses anything but an array of texts.
create or replace function sluice._flow_names(after json) returns text[]
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    if coalesce(json_typeof(after), 'null') = 'null' then
        return '{}';
    elsif json_typeof(after) <> 'array' or exists (select from json_array_elements(after) as a where json_typeof(a) <> 'string') then
        perform sluice._invalid('after', 'it must be an array of names');
    end if;
    return array(select json_array_elements_text(after));
end
$function$;
