-- Refuses JSON that is nested too deep, as programs do. The check removes texts first, because they can hold brackets;
-- then each round removes the innermost brackets. JSON with few brackets passes at once.
create or replace function sluice._check_depth(argument text, given json) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    rest text := given::text;
begin
    if coalesce(length(rest), 0) <= 2 * {{max depth}} or length(rest) - length(replace(replace(rest, '[', ''), '{', '')) <= {{max depth}} then
        return;
    end if;
    rest := regexp_replace(rest, E'"(?:[^"\\\\]|\\\\.)*"', '', 'g');
    rest := translate(regexp_replace(rest, '[^][{}]+', '', 'g'), '{}', '[]');
    for n in 1..{{max depth}} loop
        exit when rest = '';
        rest := replace(rest, '[]', '');
    end loop;
    if rest <> '' then
        perform sluice._invalid(argument, 'it is nested deeper than {{max depth}} levels');
    end if;
end
$function$;
