-- Returns the delay that a caller asks for; null: the caller asked for none.
create or replace function sluice._delay(argument text, seconds double precision) returns interval
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    if seconds is not null and not (seconds >= 0 and seconds <= 315360000) then
        perform sluice._invalid(argument, format('%s must be from 0 to 315360000', seconds));
    end if;
    return make_interval(secs => seconds);
end
$function$;
