-- Finds room for jobs of one call in a queue, or for those of a tenant in it, and counts them in. Without room it cancels jobs of a lower
-- priority than below, if the queue sheds, or refuses the jobs. Most is the limit.
--
-- How many jobs wait is remembered in sequences: all sessions see it at once, and no rollback takes it back, not even that of a refusal.
-- A value has 22 bits of a hash that says whose it is, 17 of the time of the count in 10 ms, and 24 of how many wait, at most 16
-- million, which nextval raises: functions keep no limit above that.
-- Where two queues share a sequence, they count more often. The hash changes every 22 minutes, so that no two share a value for long.
create or replace function sluice._make_room(of_queue text, of_tenant text, jobs integer, below integer, most bigint, sheds boolean) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    now_at  constant bigint := floor(extract(epoch from clock_timestamp()) * 100);
    hash    constant bigint := hashtextextended(of_queue || ' ' || of_tenant, now_at >> 17);
    whose   constant bigint := (hash >> 4) & 4194303;
    memory  constant regclass := ('sluice.room_' || (hash & 15))::regclass;
    value   bigint;
    age     bigint;
    rest    bigint;
    waiting bigint;
    fits   boolean := false;
begin
    if jobs > most then
        perform sluice._full(of_queue, of_tenant, jobs, 0, most);
    elsif jobs = 1 then
        value := nextval(memory);
    else
        select max(nextval(memory)) into value from generate_series(1, jobs);
    end if;
    waiting := value & 16777215;
    age := case when value >> 41 = whose then (now_at & 131071) - ((value >> 24) & 131071) else -1 end; -- below 0: not known
    rest := least(waiting, most) / 500; -- a count takes some 1 µs for each job, and at most 5 % of the time
    if age >= 0 and waiting <= most and age < greatest({{count again}}, rest) then
        return;
    elsif age >= 0 and waiting > most and age < rest then
        waiting := least(waiting - jobs, most);
        fits := sheds and sluice._shed(of_queue, of_tenant, below, least(waiting + jobs - most, jobs)::integer);
    else
        waiting := sluice._waiting(of_queue, of_tenant, most::integer);
        fits := waiting + jobs <= most or sheds and sluice._shed(of_queue, of_tenant, below, (waiting + jobs - most)::integer);
        perform setval(memory, (whose << 41) | ((now_at & 131071) << 24) | least(case when fits then least(waiting + jobs, most) else waiting end, 16000000));
    end if;
    if not fits then
        perform sluice._full(of_queue, of_tenant, jobs, waiting, most);
    end if;
end
$function$;
