-- Finds room for the jobs of a call in a queue, or for a tenant's jobs in it, and counts the jobs. Most is the limit.
-- Without room, a queue that sheds cancels jobs of a lower priority than below; any other queue refuses the jobs.
-- Sequences remember how many jobs wait: all sessions see them at once, and no rollback undoes them, not even the
-- rollback of a refusal. A value has three parts. The first 22 bits are a hash of the queue and tenant. The next 17
-- bits are the time of the count, in steps of 10 ms. The last 24 bits are the number of waiting jobs. Functions keep no
-- limit above 16 million jobs, because nextval raises the number. The hash chooses the first of 8 sequences. The call takes
-- the one with its own count, or else the first whose count is 30 s old. Only if there is none, two queues share a
-- sequence and count more often; so do two tenants. The hash changes every 22 minutes, so that two do not collide for
-- long. A queue and its tenants never share a sequence.
create or replace function sluice._make_room(of_queue text, of_tenant text, jobs integer, below integer, most bigint, sheds boolean) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    now_at  constant bigint := floor(extract(epoch from clock_timestamp()) * 100);
    hash    constant bigint := hashtextextended(of_queue || ' ' || of_tenant, now_at >> 17);
    whose   constant bigint := (hash >> 4) & 4194303;
    first   constant integer := case when of_tenant <> '' then 16 else 0 end;
    memory  regclass;
    place   regclass;
    value   bigint;
    age     bigint;
    rest    bigint;
    waiting bigint;
    fits   boolean := false;
begin
    if jobs > most then
        perform sluice._full(of_queue, of_tenant, jobs, 0, most);
    end if;
    for n in 0..7 loop
        place := ('sluice.room_' || (first + ((hash + n) & 15)))::regclass;
        value := coalesce(pg_sequence_last_value(place), 0);
        if value >> 41 = whose then
            memory := place;
            exit;
        elsif memory is null and (now_at & 131071) - ((value >> 24) & 131071) not between 0 and 3000 then
            memory := place;
        end if;
    end loop;
    memory := coalesce(memory, ('sluice.room_' || (first + (hash & 15)))::regclass);
    if jobs = 1 then
        value := nextval(memory);
    else
        select max(nextval(memory)) into value from generate_series(1, jobs);
    end if;
    waiting := value & 16777215;
    age := case when value >> 41 = whose then (now_at & 131071) - ((value >> 24) & 131071) else -1 end; -- below 0: no count is known
    rest := least(waiting, most) / 500; -- a count takes some 1 µs for each job; counting may take 5 % of the time
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
