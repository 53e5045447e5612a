-- Returns the seconds until a job of a queue may be claimed, apart from the queue's limits; null: no waiting job starts
-- by itself.
create or replace function sluice._next_due(of_queue text, in_order smallint[], by_tenant boolean, low_water double precision, low_water_tenant text,
    wakes_from timestamptz, more boolean) returns double precision
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    millis  bigint;
    has     boolean;
    awake   boolean;
    wake_at timestamptz;
    now_at  timestamptz;
begin
    execute {{next_due.sql}} into millis, has
        using of_queue, in_order, array_fill('-infinity'::timestamptz, array[10]),
            array_fill('00000000-0000-0000-0000-000000000000'::uuid, array[10]), interval '0';
    if by_tenant then
        execute {{tenant_queue_next.sql}} into awake, wake_at, now_at using of_queue, low_water, low_water_tenant, coalesce(wakes_from, '-infinity');
        if awake or more then
            return 0;
        end if;
    end if;
    return least(case when millis is not null then greatest(millis, 0) / 1000.0 end,
        case when wake_at is not null then greatest(0, extract(epoch from wake_at - now_at)) end);
end
$function$;
