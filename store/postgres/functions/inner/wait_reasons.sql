-- Returns the reasons about other jobs that a queued job waits for: its twin, earlier jobs of its order, and the jobs
-- of its `after`.
create or replace function sluice._wait_reasons(job_id uuid)
returns table (reason text, open boolean, summary text, until timestamptz)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    job     record;
    blocker record;
    other   record;
    twin    boolean;
    before  boolean;
    completed integer := 0;
    looked  uuid[];
begin
    select j.* into job from sluice.jobs j where j.id = job_id;
    if job.blocked_by = job_id then -- somebody holds it, or a run of it may be open: see _run_reasons
        job.blocked_by := null;
    end if;
    select b.* into blocker from sluice.jobs b where b.id = job.blocked_by;
    twin := coalesce(job.key is not null and blocker.queue = job.queue and blocker.key = job.key, false);
    before := coalesce(blocker.queue = job.queue and blocker.order_key = job.order_key, false) and not twin;
    if twin or job.blocked_by is null or job.order_key is null and coalesce(job.after, '{}') = '{}' then
        reason := 'blocked';
        open := job.blocked_by is null;
        summary := case when open then 'it waits for no other job' else format('it waits for job %s, which holds its key, to end', job.blocked_by) end;
        return next;
    end if;
    if job.order_key is not null then
        reason := 'order_key';
        open := not before;
        summary := case when open then format('it waits for no job before it with the order key "%s"', job.order_key)
            else format('it waits for job %s, which is %s and comes before it with the order key "%s"', blocker.id, blocker.state, job.order_key) end;
        return next;
    end if;
    if coalesce(job.after, '{}') = '{}' then
        return;
    end if;
    reason := 'after';
    open := true;
    summary := '';
    looked := job.after[1:{{max after read}}];
    if cardinality(job.after) > {{max after read}} and job.blocked_by = any (job.after) and not job.blocked_by = any (looked) then
        looked[{{max after read}}] := job.blocked_by;
    end if;
    for other in select g.id, j.state, coalesce(sluice._may('operate', j.queue), true) as seen from unnest(looked) with ordinality as g(id, n) left join sluice.jobs j on j.id = g.id order by g.n loop
        if not other.seen then
            summary := summary || format('; job %s is not for this role to see', other.id);
            open := open and job.blocked_by is null;
        elsif other.state is null then
            summary := summary || format('; job %s is gone from the history', other.id);
            open := open and job.blocked_by is null;
        elsif other.state = 'completed' then
            completed := completed + 1;
        else
            summary := summary || format('; job %s is %s', other.id, other.state);
            open := open and other.state in ('dead', 'cancelled') and job.blocked_by is null;
        end if;
    end loop;
    summary := case when cardinality(looked) < cardinality(job.after)
            then format('of the %s jobs that it runs after, %s of the %s that were looked at have completed', cardinality(job.after), completed, cardinality(looked))
            when cardinality(job.after) = 1 then format('the job that it runs after has %scompleted', case when completed = 0 then 'not ' else '' end)
            else format('%s of the %s jobs that it runs after have completed', completed, cardinality(job.after)) end || summary
        || case when open then '' when job.after_failure like 'run%' then '; one that has failed counts as done'
            when job.after_failure like 'wait%' then '; if one fails, it waits until that was requeued and has completed' else '; if one fails, it is cancelled' end;
    return next;
end
$function$;
