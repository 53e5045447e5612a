-- Takes back jobs of a queue whose lease ran out, or buries them as poison.
create or replace function sluice._recover(of_queue text, most integer, by_whom text, out requeued integer, out buried integer)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
    job_id   uuid;
    token    uuid;
    holder   text;
    lost     integer;
    poison   boolean;
    again    uuid[] := '{}';
    tokens   uuid[] := '{}';
    reasons  text[] := '{}';
    dead     uuid[] := '{}';
    d_tokens uuid[] := '{}';
    errors   text[] := '{}';
    row      record;
    awaited  uuid[] := '{}';
    leaves   text[];
    job_queue text;
    job_state text;
    back     uuid[] := '{}';
    ended    uuid[] := '{}';
begin
    requeued := 0;
    buried := 0;
    for job_id, token, holder, lost, poison in execute {{late.sql}} using of_queue, most, {{max recoveries}}::bigint loop
        if poison then
            dead := dead || job_id;
            d_tokens := d_tokens || token;
            errors := errors || format('poison: %s holders were lost while they ran it', lost);
        else
            again := again || job_id;
            tokens := tokens || token;
            reasons := reasons || format('the lease of %s ran out', coalesce(holder, ''));
        end if;
    end loop;
    if again <> '{}' then
        select m.leaves into leaves from sluice._move('recover') m;
        for job_id, job_queue, job_state in execute {{back.sql}}
            using array(select a from unnest(again) as a order by a),
                array(select t from unnest(again, tokens) as g(a, t) order by a), leaves, 'recover', null::interval[], null::text[], null::text[],
                array(select r from unnest(again, reasons) as g(a, r) order by a),
                array_fill(by_whom, array[cardinality(again)]), 'recovery', true, true
        loop
            requeued := requeued + 1;
            back := back || job_id;
        end loop;
        perform sluice._notify(of_queue);
    end if;
    if dead <> '{}' then
        select m.leaves into leaves from sluice._move('bury') m;
        for row in select e.* from sluice._end('bury', leaves, array(select a from unnest(dead) as a order by a),
            array(select t from unnest(dead, d_tokens) as g(a, t) order by a), null, array(select r from unnest(dead, errors) as g(a, r) order by a),
            null, array_fill('recoveries spent'::text, array[cardinality(dead)]), array_fill(by_whom, array[cardinality(dead)]), 'recovery', true) e
        loop
            if row.state <> 'let go' then
                buried := buried + 1;
                ended := ended || row.id;
                if row.awaited then
                    awaited := awaited || row.id;
                end if;
            end if;
        end loop;
        perform sluice._count_moved('bury', ended);
        perform sluice._unblock(awaited);
    end if;
    if back || ended <> '{}' then
        perform sluice._count_moved('recover', back || ended);
    end if;
end
$function$;
