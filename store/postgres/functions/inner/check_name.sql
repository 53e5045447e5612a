-- Refuses a name that is too long or has a control character or an invisible character.
create or replace function sluice._check_name(argument text, value text, most integer) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
    if octet_length(value) > most then
        perform sluice._invalid(argument, format('%s bytes are more than %s', octet_length(value), most));
    elsif value ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform sluice._invalid(argument, 'it has a control character');
    elsif value ~ E'[{{unseen characters}}]' then
        perform sluice._invalid(argument, 'it has a character that cannot be seen');
    end if;
end
$function$;
