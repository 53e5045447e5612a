-- worker: Completes a job. The result is true also if the same claim completed the job before, so you can repeat a call
-- after a lost answer. In your own transaction, the job's effect and its completion commit together.
create or replace function sluice.complete(
    id     uuid,
    token  uuid,
    result json default null -- kept with the job; at most 1 MiB
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    perform sluice._refuse(c.id, c.state, complete.token) from sluice.complete_many(array[complete.id], array[complete.token], array[complete.result]) c;
    return true;
end
$function$;
