-- Returns the reason about a job's state.
create or replace function sluice._state_reason(job_id uuid, now_at timestamptz)
returns table (reason text, open boolean, summary text, until timestamptz)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    job record;
begin
    select j.* into job from sluice.jobs j where j.id = job_id;
    reason := 'state';
    open := job.state = 'queued';
    until := case when job.state = 'claimed' and job.engine is null and job.due_at > now_at then job.due_at end;
    summary := case
        when open then 'it is queued'
        when job.state = 'claimed' and job.engine is not null then format('%s claimed it and has the engine "%s" start its run "%s"', job.holder, job.engine, job.ref)
        when until is not null then format('%s has claimed it ahead, and starts it when it is due at %s', job.holder, sluice._instant(job.due_at))
        when job.state = 'claimed' then format('it is running: %s claimed it, and holds it until %s if the lease is not renewed', job.holder, sluice._instant(job.lease_until))
        when job.state = 'dispatched' then format('it is running: the engine "%s" has it as "%s"', job.engine, job.ref)
        when job.state = 'uncertain' then 'whether its run happened is not known; a person decides, and sluice.requeue runs it again'
        when job.state = 'dead' then format('it is dead since %s: %s; sluice.requeue gives it a new life', sluice._instant(job.finished_at), split_part(job.error, E'\n', 1))
        else format('it is %s since %s', job.state, sluice._instant(job.finished_at)) end;
    return next;
end
$function$;
