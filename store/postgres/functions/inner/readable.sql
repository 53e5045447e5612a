-- Returns a job of a batch. A job with a NUL character outside its payload, which PostgreSQL cannot store, becomes an
-- error text. So it fails alone.
create or replace function sluice._readable(job json) returns json
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    if json_typeof(job) = 'object' and strpos(job::text, E'\\u0000') > 0 then
        perform e.key, case when e.key <> 'payload' then jsonb_typeof(e.value::jsonb) end from json_each(job) e;
    end if;
    return job;
exception when data_exception then
    return '"it has the character NUL"';
end
$function$;
