-- The arguments of enqueue that a job of a batch gives.
create or replace function sluice._job_of(job json, {{enqueue results}})
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
declare
    names   constant text[] := array[{{enqueue names}}];
    unknown text;
begin
    if json_typeof(job) <> 'object' then
        perform sluice._invalid('jobs', 'each must be an object');
    end if;
    select k into unknown from json_object_keys(job) as k where not k = any (names) limit 1;
    if unknown is not null then
        perform sluice._invalid('jobs', format('%L is no argument of enqueue', left(unknown, 40)));
    end if;
    queue := job ->> 'queue';
    payload := job -> 'payload';
    tenant := job ->> 'tenant';
    key := job ->> 'key';
    key_scope := coalesce(job ->> 'key_scope', 'unfinished');
    key_window := (job ->> 'key_window')::interval;
    on_duplicate := coalesce(job ->> 'on_duplicate', 'keep');
    due_at := (job ->> 'due_at')::timestamptz;
    delay := (job ->> 'delay')::interval;
    priority := coalesce((job ->> 'priority')::integer, 5);
    expires_at := (job ->> 'expires_at')::timestamptz;
    labels := (job -> 'labels')::jsonb;
    max_attempts := (job ->> 'max_attempts')::integer;
    order_key := job ->> 'order_key';
    if coalesce(json_typeof(job -> 'after'), 'null') <> 'null' then
        after := array(select a::uuid from json_array_elements_text(job -> 'after') as a);
    end if;
    after_failure := job ->> 'after_failure';
    job_id := (job ->> 'job_id')::uuid;
end
$function$;
