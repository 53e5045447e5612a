-- Returns the id of the job that an act makes for a schedule. Go programs compute the same id.
create or replace function sluice._schedule_job(of_name text, act uuid) returns uuid
language sql immutable set search_path = pg_catalog, pg_temp as $function$
    select encode(set_byte(
        substring(uuid_send(act) for 6) || set_byte(substring(h.sum for 2), 0, get_byte(h.sum, 0) & 15 | 112) || substring(h.sum from 9 for 8),
        8, get_byte(h.sum, 8) & 63 | 128), 'hex')::uuid
    from (select sha256(convert_to(of_name, 'UTF8') || E'\\x00'::bytea || uuid_send(act)) as sum) h
$function$;
