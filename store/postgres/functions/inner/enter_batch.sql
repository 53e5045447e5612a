-- Keeps a batch open until the transaction ends. The function returns the reason to hold jobs that are added to the
-- batch; null: they are not held. It refuses a batch that is closed or not stored, unless the job is stored already.
create or replace function sluice._enter_batch(of_batch uuid, new_job uuid) returns text
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    id     uuid;
    locked boolean;
    open   boolean;
    paused text;
    old    boolean;
begin
    if of_batch is null then
        return null;
    end if;
    execute {{batch_enter.sql}} into id, locked using array[of_batch];
    execute {{batch_states.sql}} into id, open, paused, old using array[of_batch];
    if old then
        execute {{batch_hold_open.sql}} using array[of_batch];
    end if;
    if open and locked then
        return case when paused <> '' then format('batch %s is paused: %s', of_batch, paused) end;
    elsif exists (select from sluice.job j where j.id = new_job) then
        return null;
    elsif open is null then
        raise exception using errcode = 'SL005', message = format('batch %s is not stored', of_batch), hint = 'Open it with open_batch.';
    end if;
    raise exception using errcode = 'SL003', message = format('batch %s is closed', of_batch), hint = 'Open another one.';
end
$function$;
