-- Returns the lease that a caller asks for, or else the queue's setting.
create or replace function sluice._lease(of_queue text, seconds double precision) returns interval
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    if seconds is null then
        return coalesce((select q.lease_ms from sluice.queue q where q.name = of_queue), {{lease ms}}) * interval '1 millisecond';
    elsif not (seconds >= 0.001 and seconds <= 86400) then
        perform sluice._invalid('lease_seconds', format('%s must be from 0.001 to 86400', seconds));
    end if;
    return make_interval(secs => seconds);
end
$function$;
