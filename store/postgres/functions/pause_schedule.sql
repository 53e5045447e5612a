-- operator: Stops the fires of a schedule until somebody resumes it. Jobs that the schedule has made stay.
create or replace function sluice.pause_schedule(
    name   text,
    reason text,             -- why; it must not be blank, and shows on the schedule
    actor  text default null -- who acts, for the audit; null: the role
) returns boolean -- false: the schedule was paused already
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    return sluice._set_schedule_paused(name, true, reason, actor);
end
$function$;
