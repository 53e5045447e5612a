-- Claims jobs of one queue, or only looks. The last row has no id. Its wait is the seconds until a claim may get a job;
-- null: no waiting job starts by itself. Limited says whether limits hold jobs back. Is_full says whether the end of a
-- job in flight may help.
create or replace function sluice._claim(of_queue text, most integer, by_holder text, with_token uuid, lease interval, in_order smallint[], look_only boolean)
returns table ({{columns}}, wait double precision, limited boolean, is_full boolean)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    fronts  constant timestamptz[] := array_fill('-infinity'::timestamptz, array[10]);
    zeroes  constant uuid[] := array_fill('00000000-0000-0000-0000-000000000000'::uuid, array[10]);
    there   boolean;
    orphans uuid[] := '{}';
    millis  bigint;
    has     boolean;
begin
    execute {{flow_there.sql}} into there using of_queue;
    for round in 1..2 loop
        if there then
            return query select l.* from sluice._claim_limited(of_queue, most, by_holder, with_token, lease, in_order, look_only) l;
            if found then
                return;
            end if;
        end if;
        has := false;
        if not look_only then
            for {{column names}} in execute {{claim.sql}} || ' order by c.priority, c.due_at, c.id'
                using of_queue, in_order, fronts, zeroes, most, with_token, by_holder, lease, false, null::timestamptz, interval '0', ''
            loop
                if created_at is null then
                    orphans := orphans || id;
                    continue;
                end if;
                has := true;
                return next;
            end loop;
            perform sluice._drop_orphans(orphans, with_token, by_holder);
        end if;
        if has then
            id := null;
            limited := false;
            is_full := false;
            return next;
            return;
        end if;
        execute {{next_due.sql}} into millis, has using of_queue, in_order, fronts, zeroes, interval '0';
        if not has then
            wait := case when millis is not null then greatest(millis, 0) / 1000.0 end;
            limited := false;
            is_full := false;
            return next;
            return;
        end if;
        execute {{flow_add.sql}} using of_queue;
        there := true;
    end loop;
    limited := true; -- the queue's limits change at this moment
    is_full := false;
    wait := 0.01;
    return next;
end
$function$;
