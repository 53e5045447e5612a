-- Fills the instant and the date of a fire into a text of a schedule.
create or replace function sluice._schedule_text(template text, at timestamptz, zone text) returns text
language sql stable set search_path = pg_catalog, pg_temp as $function$
    select replace(replace(template,
        '{{fire}}'::text, rtrim(rtrim(to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), '0'), '.') || 'Z'),
        '{{date}}'::text, to_char(at at time zone coalesce(nullif(zone, ''), 'UTC'), 'YYYY-MM-DD'))
$function$;
