-- owner: Lets a role call the functions of workers for some queues, and nothing else. The role needs no right to any
-- table.
create or replace function sluice.grant_worker(
    role   text,
    queues text[] -- '*': every queue
) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
begin
    perform sluice._grant(role, 'work', queues);
end
$function$;
