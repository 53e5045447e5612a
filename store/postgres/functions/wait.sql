-- worker: Returns how long to wait until a claim may get a job, so that an idle worker need not poll. A producer may
-- enqueue meanwhile: wait no longer than your poll interval, or listen.
create or replace function sluice.wait(
    queues text[] -- the queues of the worker
) returns table (
    queue   text,
    seconds double precision, -- null: no waiting job starts by itself
    limited boolean,          -- true: limits hold due jobs back
    is_full boolean           -- true: the end of a job in flight may let another job start
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
