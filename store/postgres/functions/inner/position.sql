-- Returns the position of a queued job: the jobs ahead, the jobs in flight, and the state of its rates.
create or replace function sluice._position(job_id uuid, out now_at timestamptz, out ahead bigint, out in_flight bigint, out token_wait double precision,
    out by_tenant boolean, out held bigint, out tenant_tokens double precision, out tenant_filled_at timestamptz)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    rate double precision; rate_per bigint; burst bigint; tokens double precision; filled_at timestamptz; queue text; tenant text;
    concurrency bigint; tenant_rate double precision; tenant_per bigint; tenant_burst bigint;
    in_window record;
begin
    execute {{position.sql}} into now_at, ahead, in_flight, rate, rate_per, burst, tokens, filled_at, by_tenant, queue, tenant, tenant_tokens,
        tenant_filled_at, held, concurrency, tenant_rate, tenant_per, tenant_burst
        using job_id, {{count limit}};
    token_wait := sluice._token_wait(coalesce(tokens, 0), filled_at, coalesce(rate, 0), coalesce(rate_per, 1000), coalesce(burst, 0), now_at);
    if rate > 0 then
        select * into in_window from sluice._window_wait(queue, 1, sluice._window_jobs(rate, rate_per) + burst, sluice._window_of(rate, rate_per), null, now_at);
        token_wait := greatest(token_wait, in_window.wait);
    end if;
end
$function$;
