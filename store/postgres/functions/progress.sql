-- worker: Reports to people how far a claimed job has come. Sluice stores at most one report per job and second, and
-- deletes it after the attempt.
create or replace function sluice.progress(
    id       uuid,
    token    uuid,
    fraction double precision,        -- the part that is done, from 0 to 1
    message  text default null        -- one line for people, of at most 200 bytes
) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
begin
    perform sluice._check_batch(array[id], array[token]);
    perform sluice._check_name('message', message, 200);
    if not coalesce(fraction >= 0 and fraction <= 1, false) then
        perform sluice._invalid('fraction', format('%s must be from 0 to 1', coalesce(fraction::text, 'null')));
    end if;
    if exists (select from sluice.progress p join sluice.live l on l.id = p.id and l.claimed_at = p.claimed_at
               where p.id = progress.id and l.token = progress.token and p.reported_at > clock_timestamp() - interval '1 second') then
        return;
    end if;
    if not id = any (sluice._allowed(array[id])) or not exists (
        select from sluice.live l where l.id = progress.id and l.token = progress.token and l.state = 'claimed')
    then
        perform sluice._refuse(id, 'lost', token);
    end if;
    execute {{progress_save.sql}} using array[id], array[token], array[fraction], array[coalesce(message, '')];
end
$function$;
