-- operator: Explains why a job is not running. It returns the reasons in the order in which a claim checks them, and
-- for a closed reason when it opens by itself.
create or replace function sluice.why(
    job_id uuid
) returns table (
    reason  text,       -- state, held, open_run, blocked, order_key, after, expiry, due, paused, rate, in_flight, limit, tenant, concurrency, tenant_rate, order, upkeep, workers or dispatchers
    open  boolean,
    summary  text,       -- one sentence for people
    until timestamptz -- when a closed reason opens by itself; null: no instant is known
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    job record;
    q   record;
    o   record;
begin
    select j.* into job from sluice.jobs j where j.id = job_id;
    if job.id is null or not sluice._may('operate', job.queue) then
        raise exception using errcode = 'SL005', message = format('job %s is not known', job_id), hint = 'It may have been pruned, or lie in another database.';
    end if;
    select w.* into o from sluice._position(job_id) w;
    return query select g.* from sluice._state_reason(job_id, o.now_at) g;
    return query select g.* from sluice._run_reasons(job_id) g;
    if job.state <> 'queued' then
        return;
    end if;
    return query select g.* from sluice._wait_reasons(job_id) g;
    select s.* into q from sluice.queue s where s.name = job.queue;

    reason := 'expiry'; open := coalesce(job.expires_at > o.now_at, true); until := null;
    summary := case when job.expires_at is null then 'it does not expire' when open then 'it expires at ' || sluice._instant(job.expires_at)
        else 'it expired at ' || sluice._instant(job.expires_at) || ', and upkeep will cancel it' end;
    return next;

    reason := 'due'; open := job.due_at <= o.now_at; until := case when not open then job.due_at end;
    summary := case when open then 'it is due since ' else 'it is due at ' end || sluice._instant(job.due_at)
        || case when not open and job.attempts > 0 then format(', after failed attempt %s: %s', job.attempts, split_part(job.error, E'\n', 1)) else '' end;
    return next;

    reason := 'paused'; open := not coalesce(q.paused and (q.paused_until is null or q.paused_until > o.now_at), false);
    until := case when not open then q.paused_until end;
    summary := format('queue "%s" is%s paused', job.queue, case when open then ' not' else '' end)
        || case when not open then format('; %s changed it last at %s: %s; sluice.resume goes on', q.changed_by, sluice._instant(q.changed_at), q.reason) else '' end;
    return next;

    reason := 'rate'; open := o.token_wait <= 0; until := case when not open then o.now_at + make_interval(secs => o.token_wait) end;
    summary := case when coalesce(q.rate, 0) <= 0 then 'the queue has no rate' when open then format('the rate of %s has a token', sluice._rate_text(q.rate, q.rate_per_ms))
        else format('the rate of %s has its next token at %s', sluice._rate_text(q.rate, q.rate_per_ms), until) end;
    return next;

    reason := 'in_flight'; open := coalesce(q.concurrency, 0) = 0 or o.in_flight < q.concurrency; until := null;
    summary := case when coalesce(q.concurrency, 0) = 0 then format('%s in flight, without a limit', o.in_flight)
        when open then format('%s of %s in flight', o.in_flight, q.concurrency)
        else format('%s in flight, and %s are allowed; one has to end first', o.in_flight, q.concurrency) end;
    return next;

    if coalesce(q.limits, '') <> '' then
        return query select g.* from sluice._limit_reasons(q.limits, job.limit_key, o.now_at) g;
    end if;

    if o.by_tenant then
        return query select g.* from sluice._tenant_reasons(job.queue, job.tenant, o.now_at, o.held, o.tenant_tokens, o.tenant_filled_at) g;
    end if;

    reason := 'order'; open := o.ahead = 0; until := null;
    summary := case when open then 'no due job%s comes before it' else o.ahead || ' due jobs%s come before it' end;
    summary := format(summary, case when o.by_tenant then ' of the same tenant' else '' end);
    return next;

    if starts_with(job.queue, 'sluice.') then
        reason := 'upkeep';
        open := exists (select from sluice.holder h where h.role = 'upkeep' and h.seen >= o.now_at - interval '30 seconds');
        summary := case when open then 'upkeep delivers notifications to the receivers that it has'
            else 'no upkeep was seen in the last 30 s, and upkeep alone works on internal queues' end;
        return next;
        return;
    end if;

    reason := case when coalesce(q.engine, '') = '' then 'workers' else 'dispatchers' end;
    open := exists (select from sluice.holder h where job.queue = any (h.queues) and h.seen >= o.now_at - interval '30 seconds'
        and h.mode not in ('quiesced', 'stopping') and case when reason = 'workers' then h.role <> 'dispatcher'
            else h.role = 'dispatcher' and position('"queue":"' || job.queue || '"' in h.conditions) = 0 end);
    summary := case when open then reason || ' serve the queue' else coalesce(
        (select format('no dispatcher hands the queue''s jobs to the engine "%s": %s', q.engine,
                substring(h.conditions from '"queue":"' || job.queue || E'"[^}]*"text":"((?:[^"\\\\]|\\\\.)*)'))
            from sluice.holder h where reason = 'dispatchers' and h.role = 'dispatcher' and h.seen >= o.now_at - interval '30 seconds'
            and position('"queue":"' || job.queue || '"' in h.conditions) > 0 limit 1),
        (select format('all %s of queue "%s" that run were told to claim nothing; see: sluice holders', reason, job.queue)
            from sluice.holder h where job.queue = any (h.queues) and h.seen >= o.now_at - interval '30 seconds'
            and h.mode in ('quiesced', 'stopping') and (h.role = 'dispatcher') = (reason = 'dispatchers') limit 1),
        format('no %s of queue "%s" was seen in the last 30 s', rtrim(reason, 's'), job.queue)) end;
    return next;
end
$function$;
