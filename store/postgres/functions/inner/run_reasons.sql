-- Returns reasons about holds of a job, and about its earlier runs that may still be open.
create or replace function sluice._run_reasons(job_id uuid)
returns table (reason text, open boolean, summary text, until timestamptz)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    held record;
    run record;
    state text;
begin
    select j.state into state from sluice.jobs j where j.id = job_id;
    for held in select * from sluice.hold h where h.job_id = _run_reasons.job_id loop
        reason := 'held';
        open := false;
        summary := format('held: %s, by %s, since %s', held.reason, held.actor, sluice._instant(held.held_at));
        return next;
    end loop;
    for run in select * from sluice.orphan_run s where s.job_id = _run_reasons.job_id order by s.cancelled_at, s.ref limit 10 loop
        reason := 'open_run';
        open := state <> 'queued' or run.beside;
        summary := case when open then '' else 'it waits for an earlier run to end: ' end
            || format('its run "%s" at the engine "%s" may still be open; its life %s ended at %s', run.ref, run.engine, run.generation,
                sluice._instant(run.cancelled_at))
            || case when run.terminate then '; upkeep ends it by force, and lets go of it when the engine says that it has ended'
                else format('; upkeep asks it to end, and `sluice runs terminate %s` ends it by force', run.job_id) end;
        return next;
    end loop;
end
$function$;
