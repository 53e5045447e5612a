-- worker: Says how long to wait until a claim may get something, so that a worker that found nothing need not poll more often.
-- Somebody may enqueue meanwhile: wait at most as long as you would poll, or listen.
create or replace function sluice.wait(
    queues text[] -- of which queues
) returns table (
    queue   text,
    seconds double precision, -- null: nothing waits that starts by itself
    limited boolean,          -- jobs that are due are held back by the queue's limits
    is_full boolean           -- they wait for one of those in flight to end
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    if queues is null then
        perform sluice._invalid('queues', 'they are missing');
    end if;
    perform sluice._recheck();
    foreach queue in array queues loop
        perform sluice._check_queue('work', queue);
        perform sluice._check_runner(queue);
        select c.wait, c.limited, c.is_full into seconds, limited, is_full
        from sluice._claim(queue, 1, '', null, null, '{1,2,3,4,5,6,7,8,9,10}', true) c where c.id is null;
        return next;
    end loop;
end
$function$;
