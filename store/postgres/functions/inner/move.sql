-- Returns the row of the state machine for an event, and whether the audit records the event in every queue.
create or replace function sluice._move(of_event text, out leaves text[], out leads_to text, out notable boolean)
language sql immutable set search_path = pg_catalog, pg_temp as $function$
    select m.leaves, m.leads_to, m.notable
    from (values
{{moves}}
    ) as m(event, leaves, leads_to, notable)
    where m.event = of_event
$function$;
