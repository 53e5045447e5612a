-- Refuses the jobs of a call because a queue, or a tenant in it, is full. The detail is JSON for programs.
create or replace function sluice._full(of_queue text, of_tenant text, jobs integer, waiting bigint, most bigint) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    whose   constant text := case when of_tenant <> '' then format('tenant %L in queue %s', of_tenant, of_queue) else format('queue %s', of_queue) end;
    setting constant text := case when of_tenant <> '' then 'tenant_max_waiting' else 'max_waiting' end;
    seconds constant numeric := case when jobs <= most then round(greatest({{count again}} / 100.0, waiting / 50000.0), 2) else 0 end;
begin
    raise exception using errcode = 'SL010',
        message = format('%s is full: ', whose) || case when seconds > 0
            then format('%s jobs wait, and its %s is %s; try again after %s s', waiting, setting, most, seconds)
            else format('%s jobs of one call are more than its %s of %s; split them', jobs, setting, most) end,
        detail = json_build_object('queue', of_queue, 'tenant', of_tenant, 'waiting', waiting, 'limit', most, 'jobs', jobs, 'retry_seconds', seconds),
        hint = format('Nothing was stored. A person can raise the limit: `sluice settings set %s %s=%s --reason …`.', of_queue, setting, 2 * most);
end
$function$;
