-- Refuses an invalid queue name. Also refuses internal queues to producers and workers, and queues in which the caller
-- may not perform the act.
create or replace function sluice._check_queue(what text, of_queue text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    if of_queue is null or of_queue !~ '^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$' then
        perform sluice._invalid('queue', format('%L must be 1 to 64 letters, digits and . _ : -, the first a letter or a digit', left(of_queue, 80)));
    end if;
    if what in ('produce', 'work') and starts_with(of_queue, 'sluice.') then
        perform sluice._invalid('queue', format('%L begins with sluice., which is reserved for Sluice itself; choose another name', of_queue));
    end if;
    if not sluice._may(what, of_queue) then
        raise exception using errcode = '42501',
            message = format('role %I may not %s in queue %s', sluice._caller(), what, of_queue),
            hint = format('The owner of the schema can allow it: select sluice.grant_%s(%L, array[%L])',
                case what when 'work' then 'worker' when 'produce' then 'producer' else 'operator' end, sluice._caller(), of_queue);
    end if;
end
$function$;
