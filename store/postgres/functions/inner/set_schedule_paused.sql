-- Pauses or resumes a schedule, and audits this. A resumed schedule is due at once and records when it was resumed;
-- upkeep computes its next fire from there.
create or replace function sluice._set_schedule_paused(of_name text, to_paused boolean, why text, by_whom text) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    before sluice.schedule;
    old    json;
    new    json;
    course jsonb;
    who    text := sluice._actor(by_whom);
begin
    perform sluice._check_reason(why);
    before := sluice._schedule_of(of_name);
    old := before.definition::json;
    if coalesce((old ->> 'paused')::boolean, false) = to_paused then
        return false;
    end if;
    new := (select json_object_agg(e.key, e.value) -- json keeps the payload character for character
            from (select o.key, o.value from json_each(old) o where o.key not in ('paused', 'note')
                  union all select p.key, p.value from json_each(json_build_object('paused', true, 'note', left(why, 1000))) p where to_paused) e);
    course := before.progress::jsonb;
    course := course - 'resumed';
    if not to_paused then
        course := (course - 'failures') || jsonb_build_object('resumed', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'));
    end if;
    update sluice.schedule s
    set definition = new::text, progress = course::text, next_at = case when to_paused then null else now() end,
        version = s.version + 1, changed_at = now(), changed_by = who, reason = why
    where s.name = of_name;
    execute {{audit_change.sql}} using 'schedule', of_name, who, why, old::jsonb, new::jsonb, null::uuid;
    return true;
end
$function$;
