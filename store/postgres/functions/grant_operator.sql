-- owner: Lets a role call the functions of operators for some queues, and nothing else. The role needs no right to any
-- table.
create or replace function sluice.grant_operator(
    role   text,
    queues text[] -- '*': every queue
) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
begin
    perform sluice._grant(role, 'operate', queues);
end
$function$;
