-- Returns the arguments of enqueue that a job of a batch gives as JSON.
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
    {{enqueue reads}}
    if coalesce(json_typeof(job -> 'after'), 'null') <> 'null' then
        after := array(select a::uuid from json_array_elements_text(job -> 'after') as a);
    end if;
end
$function$;
