-- Pauses or opens a queue, and audits this. The function writes the setting as Go programs do, so that they recognize
-- it as recorded.
create or replace function sluice._set_paused(of_queue text, to_paused boolean, to_until timestamptz, why text, by_whom text) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    before record;
    change jsonb;
    who    text := sluice._actor(by_whom);
begin
    perform sluice._check_queue('operate', of_queue);
    perform sluice._check_reason(why);
    select q.paused, q.paused_until, q.recorded, q.scheduled into before from sluice.queue q where q.name = of_queue for update;
    if not found then
        raise exception using errcode = 'SL002', message = format('queue %s has no settings', of_queue),
            hint = format('Make them with `sluice settings set %s lease=1m`, or let the first job be enqueued by a program.', of_queue);
    elsif before.paused = to_paused and before.paused_until is not distinct from to_until then
        return false;
    end if;
    change := jsonb_build_object('paused', to_paused, 'paused_until',
        coalesce(to_char(to_until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), ''));
    update sluice.queue q
    set paused = to_paused, paused_until = to_until, version = q.version + 1, changed_at = now(), changed_by = who, reason = why,
        recorded = q.recorded || change
    where q.name = of_queue;
    execute {{audit_change.sql}} using 'queue', of_queue, who, why,
        coalesce(before.recorded, jsonb_build_object('paused', before.paused)) || case when before.scheduled is null then '{}' else jsonb_build_object('scheduled', before.scheduled) end,
        coalesce(before.recorded, '{}') || change || case when before.scheduled is null then '{}' else jsonb_build_object('scheduled', before.scheduled) end, null::uuid;
    perform sluice._notify(of_queue);
    return true;
end
$function$;
