-- owner: Lets a role pause, resume, requeue, hold, release and edit in some queues, and ask why their jobs do not run, and do nothing else: it needs no right to any table.
create or replace function sluice.grant_operator(
    role   text,
    queues text[] -- '*': every queue
) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
begin
    perform sluice._grant(role, 'operate', queues);
end
$function$;
