-- operator: Changes a waiting job. A null argument leaves its field as it is. The audit records the changed fields
-- before and after; of a payload it records only the size.
create or replace function sluice.edit(
    job_id   uuid,
    reason   text,                       -- why; it must not be blank
    payload  json default null,          -- the new payload; it must pass the checks of an enqueue
    priority integer default null,       -- 1 (first) to 10 (last)
    due_at   timestamptz default null,   -- the new earliest start
    timeout  interval default null,      -- the most time for an attempt; 0: the handler's or the queue's timeout
    labels   jsonb default null,         -- all labels of the job; {}: none
    tenant   text default null,          -- the new tenant; '': none
    limit_key text default null,         -- the new limit key; '': none
    cost     integer default null,       -- the new units for limits by cost; 0: 1
    expect   text default null,          -- the version from job_version; if the job's version differs, the edit fails; null: any version
    actor    text default null,          -- who acts, for the audit; null: the role
    act_id   uuid default null           -- an id of your own; with it you can repeat a call after a lost answer
) returns text -- the version after the edit
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    allowed uuid[] := sluice._operable(array[job_id]);
    given_payload constant boolean := payload is not null;
    given_due constant boolean := due_at is not null;
    given_limited constant boolean := limit_key is not null or cost is not null;
    old    record;
    before jsonb := '{}';
    after  jsonb := '{}';
    queue  text;
    row    record;
begin
    perform sluice._check_reason(reason);
    perform sluice._check_name('reason', reason, 1000);
    if allowed = '{}' then
        raise exception using errcode = 'SL005', message = format('job %s is not known', job_id), hint = 'It never was stored, or lies in a queue in which you may not operate.';
    elsif sluice._acted(act_id, allowed) <> '{}' then
        return sluice._version(job_id);
    elsif not given_payload and priority is null and not given_due and timeout is null and labels is null and tenant is null and not given_limited then
        perform sluice._invalid('edit', 'it changes nothing; name a field to change');
    end if;
    if tenant is not null then
        execute {{key_lock.sql}} using job_id;
    end if;
    execute {{lock_waiting.sql}} into row using job_id;
    select l.queue, l.tenant, l.priority, l.due_at, l.expires_at, j.payload, coalesce(j.labels, '{}') as labels, coalesce(j.timeout_ms, 0) as timeout_ms,
        coalesce(j.limit_key, '') as limit_key, coalesce(j.cost, 0) as cost
    into old from sluice.live l join sluice.job j on j.id = l.id where l.id = job_id and l.state = 'queued';
    if row.id is null or old.queue is null then
        perform sluice._refuse(job_id, 'not allowed', null);
    elsif expect is not null and expect <> sluice._version(job_id) then
        raise exception using errcode = 'SL009', message = format('job %s has another version than %s', job_id, left(expect, 40)),
            hint = 'Somebody changed or ran it since. Look at it again, and ask for its version with select sluice.job_version(job_id => …).';
    elsif old.expires_at <= due_at then
        perform sluice._invalid('due_at', 'the job would expire before it is due');
    end if;
    if given_payload then
        before := before || jsonb_build_object('payload_bytes', length(old.payload));
        after := after || jsonb_build_object('payload_bytes', length(sluice._bytes(payload)));
        queue := old.queue; -- the checks use the queue's settings only if the payload changes
    end if;
    before := before || jsonb_strip_nulls(jsonb_build_object(
        'priority', case when priority is not null then old.priority end, 'due_at', case when given_due then sluice._instant(old.due_at) end,
        'timeout', case when timeout is not null then sluice._duration_text(old.timeout_ms) end, 'labels', case when labels is not null then old.labels end,
        'tenant', case when tenant is not null then old.tenant end,
        'limit_key', case when limit_key is not null then old.limit_key end, 'cost', case when cost is not null then greatest(old.cost, 1) end));
    after := after || jsonb_strip_nulls(jsonb_build_object(
        'priority', priority, 'due_at', sluice._instant(due_at), 'timeout', sluice._duration_text((extract(epoch from timeout) * 1000)::bigint), 'labels', labels, 'tenant', tenant,
        'limit_key', limit_key, 'cost', case when cost = 0 then 1 else cost end));
    tenant := coalesce(tenant, old.tenant);
    limit_key := coalesce(limit_key, old.limit_key);
    cost := nullif(coalesce(cost, old.cost), 0);
    priority := coalesce(priority, old.priority);
    labels := coalesce(labels, old.labels);
    timeout := nullif(coalesce(timeout, old.timeout_ms * interval '1 millisecond'), interval '0');
    payload := coalesce(payload, 'null');
    perform sluice._check_job({{edit values}});
    execute {{edit.sql}} into row using job_id, tenant, priority::smallint, coalesce(due_at, old.due_at),
        case when given_payload then sluice._bytes(payload) else old.payload end,
        case when labels <> '{}' then labels::text else '' end, sluice._actor(actor), reason, act_id, before::text, after::text,
        coalesce((extract(epoch from timeout) * 1000)::bigint, 0), limit_key, coalesce(cost, 0);
    perform sluice._notify(old.queue);
    return sluice._version(job_id);
end
$function$;
