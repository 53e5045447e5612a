-- What is known of a job's turn.
create or replace function sluice._outlook(job_id uuid, out now_at timestamptz, out ahead bigint, out in_flight bigint, out token_wait double precision,
    out by_tenant boolean, out held bigint, out tenant_tokens double precision, out tenant_filled_at timestamptz)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    rate double precision; burst bigint; tokens double precision; filled_at timestamptz; queue text; tenant text;
    capacity bigint; tenant_rate double precision; tenant_burst bigint;
begin
    execute {{outlook.sql}} into now_at, ahead, in_flight, rate, burst, tokens, filled_at, by_tenant, queue, tenant, tenant_tokens,
        tenant_filled_at, held, capacity, tenant_rate, tenant_burst
        using job_id, {{outlook limit}};
    token_wait := sluice._token_wait(coalesce(tokens, 0), filled_at, coalesce(rate, 0), coalesce(burst, 0), now_at);
end
$function$;
