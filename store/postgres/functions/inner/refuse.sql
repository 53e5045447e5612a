-- Refuses a write that moved nothing.
create or replace function sluice._refuse(job_id uuid, state text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    if state = 'lost' then
        raise exception using errcode = 'SL001', message = format('the claim of job %s is lost', job_id),
            detail = 'The token is not that of the job''s claim: its lease ran out and it was taken back, or somebody cancelled or finished it.',
            hint = 'Stop working on it and undo what you did; do not try again.';
    elsif state = 'not allowed' then
        raise exception using errcode = 'SL003', message = format('job %s is not in a state in which this can be done', job_id),
            hint = 'Look at it with select * from sluice.why(job_id => …).';
    end if;
end
$function$;
