-- Checks the job of a flow's node, and returns it as an argument of _enqueue_together. For a map the function returns a
-- job for upkeep, which makes the jobs of the elements.
create or replace function sluice._flow_job(of_flow uuid, node json, maps text[], deadline timestamptz, new_queue boolean) returns json
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
declare
    name    constant text := node ->> 'name';
    names   constant text[] := sluice._flow_names(node -> 'after');
    a_map   constant boolean := coalesce(node ->> 'over', '') <> '';
    payload constant json := coalesce(node -> 'payload', case when a_map then '"{{item}}"' else '{}' end::json);
    labels  constant jsonb := jsonb_build_object('flow', of_flow, 'node', name);
    after   uuid[];
    rules   text;
    item    json;
    job     record;
begin
    perform sluice._check_queue('produce', node ->> 'queue');
    if new_queue then
        perform sluice._admit(node ->> 'queue');
    else
        perform sluice._check_known(node ->> 'queue');
    end if;
    if coalesce(json_typeof(node -> 'labels'), 'null') not in ('object', 'null') then
        perform sluice._invalid('labels', 'they must be an object of texts');
    end if;
    select array_agg(sluice._flow_id(of_flow, g)) into after from unnest(names) as g;
    if after is not null then
        select coalesce(nullif(node ->> 'on_failure', ''), 'cancel') || coalesce(string_agg(' ' || i.id || '=' || i.rule, '' order by i.id), '') into rules
        from (select sluice._flow_id(of_flow, r.key) as id, r.value as rule
              from json_each_text(case json_typeof(node -> 'on_failure_of') when 'object' then node -> 'on_failure_of' else '{}' end) r) i;
    end if;
    item := json_build_object('queue', node -> 'queue', 'payload', payload, 'tenant', node -> 'tenant', 'priority', nullif((node ->> 'priority')::integer, 0),
        'max_attempts', nullif((node ->> 'max_attempts')::integer, 0), 'order_key', node -> 'order_key', 'expires_at', deadline,
        'labels', coalesce(nullif((node -> 'labels')::jsonb, 'null'), '{}') || labels, 'after', after, 'after_failure', rules);
    job := sluice._job_of(item);
    job.job_id := sluice._flow_id(of_flow, name);
    perform sluice._check_job({{enqueue values of job}});
    if not a_map then
        return item;
    end if;
    item := json_build_object('queue', 'sluice.flow.map', 'expires_at', deadline, 'labels', labels, 'after', after, 'after_failure', rules,
        'payload', json_build_object('flow', of_flow, 'node', node, 'over_map', node ->> 'over' = any (maps),
            'deadline', case when deadline is not null then to_char(deadline at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') else '0001-01-01T00:00:00Z' end));
    job := sluice._job_of(item);
    perform sluice._check_job({{enqueue values of job}});
    return item;
end
$function$;
