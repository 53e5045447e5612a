-- producer: Returns how a job ended and its result, and can wait for the end. A waiting call holds a snapshot: call it
-- in a transaction of its own, and wait a few seconds per call.
create or replace function sluice.result(
    job_id       uuid,
    wait_seconds double precision default 0 -- the longest wait for the end, from 0 to 60
) returns table (
    state       text,        -- completed, dead or cancelled; of an unfinished job: queued, claimed, dispatched or uncertain; or unknown
    result      json,        -- the handler's result; null: none
    error       text,        -- the last failure, or a note that the result is no longer kept; null: none
    finished_at timestamptz  -- null: the job has not ended
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    until constant timestamptz := clock_timestamp() + wait_seconds * interval '1 second';
    pause double precision := 0.01;
    ended record;
begin
    if job_id is null then
        perform sluice._invalid('job_id', 'it is missing');
    elsif not coalesce(wait_seconds >= 0 and wait_seconds <= 60, false) then
        perform sluice._invalid('wait_seconds', format('%s must be from 0 to 60', coalesce(wait_seconds::text, 'null')));
    elsif wait_seconds > 0 and current_setting('transaction_isolation') <> 'read committed' then
        perform sluice._invalid('wait_seconds', format('a transaction that is %s never sees the end; wait in one that is read committed', current_setting('transaction_isolation')));
    end if;
    if not exists (select from sluice.job j where j.id = job_id and (sluice._may('produce', j.queue) or sluice._may('operate', j.queue))) then
        state := 'unknown';
        return next;
        return;
    end if;
    loop
        select l.state into state from sluice.live l where l.id = job_id;
        if state is null then
            select d.* into ended from sluice.done d where d.id = job_id order by d.generation desc limit 1;
            state := coalesce(ended.outcome, 'unknown');
            result := sluice._json(ended.result);
            error := case when octet_length(ended.result) = 0 then 'the result is no longer kept: keep_results of its queue is over' else ended.error end;
            finished_at := ended.finished_at;
        end if;
        exit when finished_at is not null or state = 'unknown' or clock_timestamp() + pause * interval '1 second' > until;
        perform pg_sleep(pause);
        pause := least(pause * 1.5, 0.25);
    end loop;
    return next;
end
$function$;
