-- operator: Fires a schedule now, even while the schedule is paused or an earlier job is unfinished. The next fire
-- stays as planned.
create or replace function sluice.trigger_schedule(
    name   text,
    reason text,              -- why; it must not be blank
    actor  text default null, -- who acts, for the audit; null: the role
    act_id uuid default null  -- an id of your own, best a UUIDv7; with it you can repeat a call after a lost answer
) returns table (
    id        uuid,   -- for a duplicate: the id of the job that holds the key
    duplicate boolean -- true: no job was made, because another job holds the key or the call is a repeat
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    it     sluice.schedule;
    d      jsonb;
    course jsonb;
    stored record;
    act    uuid := coalesce(act_id, sluice._new_id());
    who    text := sluice._actor(actor);
    zone   text;
    fire   timestamptz := now();
    said   text;
    job    uuid;
    body   json;
    "key"  text;
    "order" text;
begin
    perform sluice._check_reason(reason);
    it := sluice._schedule_of(name);
    d := it.definition::jsonb;
    course := it.progress::jsonb;
    zone := d ->> 'zone';
    job := sluice._schedule_job(name, act);
    if exists (select from jsonb_array_elements(coalesce(course -> 'recent', '[]')) r where r ->> 'job' = job::text) then
        return query select job, true;
        return;
    end if;
    "key" := sluice._schedule_text(d ->> 'key', fire, zone);
    "order" := case when d ->> 'overlap' in ('queue one', 'queue all') then 'schedule:' || name end;
    body := sluice._schedule_text((it.definition::json -> 'payload')::text, fire, zone)::json;
    perform sluice._check_payload(it.queue, body);
    perform sluice._note_awaited(array[it.queue], array["order"], array["key"], array[false], '{}', '{}');
    select e.* into stored from sluice._enqueue(
        queue => it.queue, payload => body, tenant => d ->> 'tenant',
        key => "key", key_scope => 'unfinished', key_window => null, on_duplicate => 'keep', due_at => null, delay => null,
        priority => coalesce((d ->> 'priority')::integer, 5), expires_at => null,
        labels => jsonb_build_object('schedule', name) || coalesce((
            select jsonb_object_agg(l.key, sluice._schedule_text(l.value, fire, zone)) from jsonb_each_text(coalesce(d -> 'labels', '{}')) l), '{}'),
        max_attempts => null, timeout => null, order_key => "order", after => '{}', after_failure => null, hold => null, batch_id => null, limit_key => null, cost => null, job_id => job, prepared => false) e;
    said := to_char(fire at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
    course := course || jsonb_build_object('recent', ( -- Progress.keep of package schedule chooses in the same way
        select jsonb_agg(r.fire order by r.n)
        from (select g.fire, g.n, count(*) over () as all_fires,
                     min(g.n) filter (where coalesce(g.fire ->> 'state', 'dead') in ('completed', 'dead', 'cancelled')) over () as ended
              from jsonb_array_elements(coalesce(course -> 'recent', '[]') || case when stored.duplicate
                  then jsonb_build_object('at', said, 'job', stored.id, 'result', 'duplicate')
                  else jsonb_build_object('at', said, 'job', stored.id, 'result', 'by hand', 'state', 'queued') end) with ordinality as g(fire, n)) r
        where r.all_fires <= {{recent fires}} or r.n <> coalesce(r.ended, {{recent fires}} / 2 + 1)));
    update sluice.schedule s set progress = course::text where s.name = trigger_schedule.name;
    if not stored.duplicate then
        insert into sluice.audit (object, name, event, actor, reason, after, act_id)
        values ('schedule', trigger_schedule.name, 'fire', who, trigger_schedule.reason, jsonb_build_object('fires', 1, 'from', said, 'to', said), act);
    end if;
    return query select stored.id, stored.duplicate;
    perform sluice._unblock(stored.behind);
    perform sluice._notify(it.queue);
end
$function$;
