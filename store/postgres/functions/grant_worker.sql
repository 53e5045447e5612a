-- owner: Lets a role claim and finish jobs in some queues, and do nothing else: it needs no right to any table.
create or replace function sluice.grant_worker(
    role   text,
    queues text[] -- '*': every queue
) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
begin
    perform sluice._grant(role, 'work', queues);
end
$function$;
