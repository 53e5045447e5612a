-- Refuses a call about a holder that serves a queue in which the caller may not work.
create or replace function sluice._check_holder(of_holder text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $function$
begin
    if exists (select from sluice.holder h where h.id = of_holder and (h.role <> 'worker'
        or exists (select from unnest(h.queues) as q where not sluice._may('work', q)))) then
        raise exception using errcode = '42501', message = format('holder %s is another one''s', of_holder),
            hint = 'Name your process so that nobody else has its name, such as host:pid:nonce.';
    end if;
end
$function$;
