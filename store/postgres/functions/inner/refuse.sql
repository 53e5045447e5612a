-- Raises the error for a write that moved no job. The token shows whether somebody cancelled the job while the caller
-- held it.
create or replace function sluice._refuse(job_id uuid, state text, of_token uuid) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    if state = 'lost' and exists (select from sluice.done d where d.id = job_id and d.token = of_token and d.outcome = 'cancelled' and d.requeued_at is null) then
        raise exception using errcode = 'SL001', message = format('the claim of job %s is lost: it was cancelled', job_id),
            detail = 'Somebody cancelled the job while you held it. Nobody else has it.',
            hint = 'Stop working on it and clean up; do not try again.';
    elsif state = 'lost' then
        raise exception using errcode = 'SL001', message = format('the claim of job %s is lost', job_id),
            detail = 'The token is not that of the job''s claim: its lease ran out and it was taken back, or somebody cancelled or finished it.',
            hint = 'Stop working on it and undo what you did; do not try again.';
    elsif state = 'not allowed' then
        raise exception using errcode = 'SL003', message = format('job %s is not in a state in which this can be done', job_id),
            hint = 'Look at it with select * from sluice.why(job_id => …).';
    end if;
end
$function$;
