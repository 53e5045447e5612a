-- Returns how long a job of a queue waits after a failed attempt. Attempts count from 1.
create or replace function sluice._backoff(of_queue text, attempt integer) returns interval
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    base double precision; factor double precision; most double precision; jitter double precision; full_jitter boolean;
    wait double precision;
begin
    select q.backoff_base_ms, q.backoff_factor, q.backoff_max_ms, q.backoff_jitter_ms, q.backoff_full_jitter
    into base, factor, most, jitter, full_jitter
    from sluice.queue q where q.name = of_queue;
    if not found then
        base := {{backoff base ms}}; factor := {{backoff factor}}; most := {{backoff max ms}}; jitter := {{backoff jitter ms}}; full_jitter := {{backoff full jitter}};
    end if;
    -- If the power would overflow, the wait has exceeded backoff_max_ms long before.
    wait := case when base <= 0 then 0 when ln(base) + (attempt - 1) * ln(factor) > 40 then most
        else least(most, base * factor ^ (attempt - 1)) end;
    if full_jitter then
        return make_interval(secs => random() * wait / 1000);
    end if;
    return make_interval(secs => (wait + random() * jitter) / 1000);
end
$function$;
