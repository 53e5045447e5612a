-- worker: Stores how far a claimed job has come. A later attempt finds it in the column checkpoint of its claim.
create or replace function sluice.checkpoint(
    id         uuid,
    token      uuid,
    checkpoint json -- at most 1 MiB
) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    saved uuid;
begin
    perform sluice._check_batch(array[id], array[token]);
    perform sluice._check_result('checkpoint', checkpoint);
    if id = any (sluice._allowed(array[id])) then
        execute {{checkpoint.sql}} into saved using id, token, sluice._bytes(checkpoint);
    end if;
    if saved is null then
        perform sluice._refuse(id, 'lost', token);
    end if;
end
$function$;
