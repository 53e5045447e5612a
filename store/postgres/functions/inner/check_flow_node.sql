-- Refuses a node that breaks a rule of flows. The caller checks the node's job, and whether the flow has the nodes that
-- `after` names.
create or replace function sluice._check_flow_node(node json) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
declare
    after constant text[] := sluice._flow_names(node -> 'after');
    rules constant json := case when coalesce(json_typeof(node -> 'on_failure_of'), 'null') = 'null' then '{}' else node -> 'on_failure_of' end;
    rule    record;
    unknown text;
    label   text;
begin
    select k into unknown from json_object_keys(node) as k
    where k not in ('name', 'queue', 'payload', 'after', 'on_failure', 'on_failure_of', 'over', 'most', 'tenant', 'priority', 'max_attempts', 'order_key', 'labels') limit 1;
    if unknown is not null then
        perform sluice._invalid(left(unknown, 40), 'a node has no such field');
    elsif node ->> 'name' is null or node ->> 'name' !~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$' then
        perform sluice._invalid('name', format('%L must be 1 to 64 letters, digits and . _ : -, the first a letter or a digit', left(node ->> 'name', 80)));
    end if;
    select a into unknown from unnest(after) as a group by a having count(*) > 1 limit 1;
    if unknown is not null then
        perform sluice._invalid('after', format('it names %L twice', unknown));
    elsif coalesce(node ->> 'on_failure', '') not in ('', 'cancel', 'run', 'wait') then
        perform sluice._invalid('on_failure', format('%L must be one of cancel, run, wait', left(node ->> 'on_failure', 40)));
    elsif json_typeof(rules) <> 'object' then
        perform sluice._invalid('on_failure_of', 'it must be an object of names and rules');
    elsif (select count(*) from json_object_keys(rules)) > {{max after failures}} then
        perform sluice._invalid('on_failure_of', 'its rules are more than {{max after failures}}');
    end if;
    for rule in select r.key, r.value from json_each_text(rules) r loop
        if not rule.key = any (after) then
            perform sluice._invalid('on_failure_of', format('the node does not run after %L', left(rule.key, 80)));
        elsif coalesce(rule.value, '') not in ('cancel', 'run', 'wait') then
            perform sluice._invalid('on_failure_of', format('%L must be one of cancel, run, wait', left(rule.value, 40)));
        end if;
    end loop;
    if coalesce(json_typeof(node -> 'queue'), 'null') not in ('string', 'null') then
        perform sluice._invalid('queue', 'it must be a text');
    elsif json_typeof(node -> 'labels') = 'object' then
        foreach label in array array['flow', 'node', 'item'] loop
            if node #> array['labels', label] is not null then
                perform sluice._invalid('labels', format('the flow sets %L itself', label));
            end if;
        end loop;
    end if;
    if coalesce(node ->> 'over', '') = '' then
        if coalesce((node ->> 'most')::integer, 0) <> 0 then
            perform sluice._invalid('most', 'only a map has it: name a node in over');
        end if;
    elsif not node ->> 'over' = any (after) then
        perform sluice._invalid('over', format('%L must be one of after', left(node ->> 'over', 80)));
    elsif coalesce(rules ->> (node ->> 'over'), nullif(node ->> 'on_failure', ''), 'cancel') = 'run' then
        perform sluice._invalid('over', format('a map cannot run if %L has failed: there is no array', node ->> 'over'));
    elsif (node -> 'payload')::text ~ E'"\\{\\{(item|index)\\}\\}"\\s*:' then
        perform sluice._invalid('payload', 'an element cannot be the name of a field; put "{{item}}" in place of a value');
    elsif (node ->> 'most')::integer not between 0 and {{max after}} then
        perform sluice._invalid('most', format('%s must be from 1 to {{max after}}', node ->> 'most'));
    end if;
end
$function$;
