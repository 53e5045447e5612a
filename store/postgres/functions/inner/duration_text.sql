-- Returns a duration for people and for the audit, such as `7d`, `1h`, `1m30s` or `500ms`.
create or replace function sluice._duration_text(ms bigint) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
    hours   bigint := ms / 3600000;
    minutes bigint := ms / 60000 % 60;
    seconds numeric := trim_scale(ms % 60000 / 1000.0);
begin
    if ms is null then
        return null;
    elsif ms = 0 then
        return '0s';
    elsif ms < 1000 then
        return ms || 'ms';
    elsif ms % 86400000 = 0 then
        return ms / 86400000 || 'd';
    elsif hours > 0 then
        return hours || 'h' || case when minutes > 0 or seconds > 0 then minutes || 'm' else '' end || case when seconds > 0 then seconds || 's' else '' end;
    elsif minutes > 0 then
        return minutes || 'm' || case when seconds > 0 then seconds || 's' else '' end;
    end if;
    return seconds || 's';
end
$function$;
