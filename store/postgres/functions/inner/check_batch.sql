-- Refuses a list of ids and tokens that differ in length, exceed 10,000, or contain an empty id or token.
create or replace function sluice._check_batch(ids uuid[], tokens uuid[]) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    if ids is null or tokens is null or cardinality(ids) <> cardinality(tokens) then
        perform sluice._invalid('ids', format('%s ids and %s tokens; each id needs its token', coalesce(cardinality(ids), 0), coalesce(cardinality(tokens), 0)));
    elsif cardinality(ids) > 10000 then
        perform sluice._invalid('ids', format('%s are more than 10000', cardinality(ids)));
    elsif array_position(ids, null) is not null then
        perform sluice._invalid('ids', 'one of them is null');
    elsif array_position(tokens, null) is not null or '00000000-0000-0000-0000-000000000000' = any (tokens) then
        perform sluice._invalid('tokens', 'one of them is null or zero; show the token of the claim');
    end if;
end
$function$;
