-- Returns the failure rule of a job for one of the jobs that it runs after. The first argument is the rules as
-- sluice.job stores them.
create or replace function sluice._after_rule(after_failure text, other uuid) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    if after_failure like '% %' then
        return coalesce(substring(after_failure from other::text || '=(cancel|run|wait)'), split_part(after_failure, ' ', 1));
    end if;
    return coalesce(nullif(after_failure, ''), 'cancel');
end
$function$;
