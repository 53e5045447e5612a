-- operator: Lets a paused schedule go on with its next fire. The schedule does not make up for the fires of the pause.
create or replace function sluice.resume_schedule(
    name   text,
    reason text,             -- why; it must not be blank
    actor  text default null -- who acts, for the audit; null: the role
) returns boolean -- false: the schedule was not paused
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    return sluice._set_schedule_paused(name, false, reason, actor);
end
$function$;
