-- worker: Records that an attempt failed. While attempts remain, the job is queued again and due after the queue's
-- backoff. The last attempt, or a permanent error, makes the job dead: it then waits for a person.
create or replace function sluice.fail(
    id            uuid,
    token         uuid,
    error         text,                          -- the failure; stored with the job, without secrets of a known form
    retryable     boolean default true,          -- false: no attempt can succeed
    retry_seconds double precision default null, -- the wait before the next attempt; null: the queue's backoff
    stack         text default null
) returns text -- queued or dead
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    row record;
begin
    perform sluice._check_said('retryable', retryable);
    select f.* into row from sluice.fail_many(array[fail.id], array[fail.token], array[error], array[retryable], array[retry_seconds], array[stack]) f;
    perform sluice._refuse(row.id, row.state, fail.token);
    return row.state;
end
$function$;
