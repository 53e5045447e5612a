-- worker: Completes a job. It is true also if the same claim completed it before, so that a call whose answer was lost can be sent
-- again. Called inside your own transaction, the effect of the job and its completion commit together or not at all.
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
