-- Returns the reasons about the tenant of a job whose queue serves its tenants apart.
create or replace function sluice._tenant_reasons(of_queue text, of_tenant text, now_at timestamptz, held bigint, tokens double precision, filled_at timestamptz)
returns table (reason text, open boolean, summary text, until timestamptz)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    terms record;
    whose text := case when of_tenant = '' then 'jobs without a tenant' else format('tenant "%s"', of_tenant) end;
    wait  double precision;
begin
    select t.* into terms from sluice.queue q, lateral sluice._terms(of_queue, array[of_tenant], q.tenant_concurrency, q.tenant_rate, q.tenant_rate_per_ms, q.tenant_burst, now_at) t
    where q.name = of_queue;
    if not found then
        select t.* into terms from sluice._terms(of_queue, array[of_tenant], 0, 0, 1000, 0, now_at) t;
    end if;
    reason := 'tenant';
    open := not terms.paused;
    until := case when not open then terms.paused_until end;
    summary := case when open then format('%s takes turns with the others, with a weight of %s', whose, terms.weight) else whose || ' is paused' end;
    return next;
    reason := 'concurrency';
    open := terms.concurrency = 0 or held < terms.concurrency;
    until := case when not open then terms.until end;
    summary := case when terms.concurrency = 0 then format('%s of %s in flight, without a limit', held, whose)
        when open then format('%s of %s of %s in flight', held, terms.concurrency, whose)
        else format('%s of %s in flight, and %s are allowed; one has to end first', held, whose, terms.concurrency) end;
    return next;
    wait := sluice._token_wait(coalesce(tokens, 0), filled_at, sluice._refill(terms.rate, terms.per_ms, terms.burst), 1000, sluice._burst(terms.rate, terms.per_ms, terms.burst)::bigint, now_at);
    reason := 'tenant_rate';
    open := wait <= 0;
    until := case when not open then now_at + make_interval(secs => wait) end;
    summary := case when terms.rate <= 0 then whose || ' has no rate' when open then format('the rate of %s of %s has a token', sluice._rate_text(terms.rate, terms.per_ms), whose)
        else format('the rate of %s of %s has its next token at %s', sluice._rate_text(terms.rate, terms.per_ms), whose, until) end;
    return next;
end
$function$;
