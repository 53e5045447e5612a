-- Returns a new UUIDv7: 48 bits of the time in milliseconds, so that ids sort by their age, then random bits.
create or replace function sluice._new_id() returns uuid
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
begin
    return (lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
        || substr(replace(sluice._random()::text, '-', ''), 14))::uuid;
end
$function$;
