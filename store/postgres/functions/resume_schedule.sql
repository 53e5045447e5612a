-- operator: Lets a paused schedule go on with its next fire. It makes up for none of those in the pause.
create or replace function sluice.resume_schedule(
    name   text,
    reason text,             -- why; it must say something
    actor  text default null -- who is told to the audit; null: the role
) returns boolean -- false: it was not paused
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    return sluice._set_schedule_paused(name, false, reason, actor);
end
$function$;
