-- operator: Opens a paused queue; it continues where it was.
create or replace function sluice.resume(
    queue  text,
    reason text,             -- why; it must say something
    actor  text default null -- who acts, for the audit; null: the role
) returns boolean -- false: it was open already
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    return sluice._set_paused(queue, false, null, reason, actor);
end
$function$;
