-- How names are resolved: in SQL, so that matchers in all languages do it alike.

-- The name within a raw text: small letters, without sizes, brands, noise and whatever is no letter.
create or replace function ingredients.normal(raw text) returns text
language sql stable strict as $$
    with plain as (
        select regexp_replace(translate(lower(raw), 'àáâäãåèéêëìíîïòóôöõùúûüñç', 'aaaaaaeeeeiiiiooooouuuunc'),
                              '[0-9]+([.,/x][0-9]+)*', ' 0 ', 'g') as said
    ), words as (
        select word, place, lag(word) over (order by place) as before
        from plain, regexp_split_to_table(regexp_replace(said, '[^a-z0]+', ' ', 'g'), ' ') with ordinality as w(word, place)
        where word <> ''
    )
    select coalesce(string_agg(word, ' ' order by place), '')
    from words
    where word <> '0' and not exists (
        select from ingredients.rule r
        where r.word = words.word and (r.kind in ('brand', 'noise') or r.kind = 'unit' and before = '0'))
$$;

-- What a raw text means. It only reads, and says the same whoever asks.
create or replace function ingredients.resolve(
    raw text, out verdict text, out normal text, out ingredient text, out sure real, out reason text)
language plpgsql stable as $$
declare
    decoy text;
    rival real;
begin
    normal := ingredients.normal(raw);
    if normal = '' then
        verdict := 'no name'; reason := format('there is no name in %L', left(raw, 60));
        return;
    end if;
    select r.word into decoy from ingredients.rule r
    where r.kind = 'decoy' and (' ' || normal || ' ') like ('% ' || r.word || ' %') order by length(r.word) desc limit 1;
    if found then
        verdict := 'not food'; sure := 1; reason := format('%s is no food', decoy);
        return;
    end if;
    select a.ingredient, similarity(a.alias, normal) into ingredient, sure
    from ingredients.alias a order by similarity(a.alias, normal) desc, a.alias limit 1;
    select max(similarity(a.alias, normal)) into rival
    from ingredients.alias a where a.ingredient <> resolve.ingredient;
    case
    when sure = 1 then
        verdict := 'matched'; reason := 'it is called so';
    when sure >= 0.55 and sure - coalesce(rival, 0) >= 0.15 then
        verdict := 'matched'; reason := 'it is called almost so';
    when sure >= 0.3 then
        verdict := 'on hold'; reason := format('it may be %s (%s); a second source must agree', ingredient, round(sure::numeric, 2));
    else
        verdict := 'on hold'; reason := 'nothing is called like it'; ingredient := null;
    end case;
end
$$;

-- Takes in what sources say: each mention with its job, or neither. A source is a queue.
create or replace function ingredients.take(sources text[], raws text[], faults integer[] default null) returns integer
language plpgsql as $$
declare
    ids bigint[];
    refused text;
begin
    select array_agg(nextval(pg_get_serial_sequence('ingredients.mention', 'id'))) into ids from unnest(raws);
    with jobs as (
        select e.* from sluice.enqueue_many((
            select json_agg(json_build_object('queue', sources[i], 'payload', json_build_object('mention', ids[i]), 'key', ids[i]::text, 'key_scope', 'forever') order by i)
            from generate_subscripts(ids, 1) i)) e
    ), stored as (
        insert into ingredients.mention (id, source, raw, job, faults)
        select ids[j.no], sources[j.no], raws[j.no], j.id, coalesce(faults[j.no], 0) from jobs j where j.error is null
    )
    select min(error) into refused from jobs;
    if refused is not null then
        raise exception 'a mention was not taken in: %', refused;
    end if;
    return coalesce(array_length(ids, 1), 0);
end
$$;

-- Stores the mention that a job of a server over HTTP brings with it, and returns its number. Each job has one.
create or replace function ingredients.heard(job_id uuid, source text, raw text, faults integer default 0) returns bigint
language sql as $$
    insert into ingredients.mention (source, raw, job, faults) values (heard.source, heard.raw, job_id, heard.faults)
    on conflict (job) do nothing;
    select id from ingredients.mention where job = job_id;
$$;

-- Decides what a mention means, and writes the trail. Called in the transaction that completes the job, both are done
-- once. A doubtful name is confirmed, and from then on sure, when another source uses it, too. A text without any name is
-- an error that no further attempt mends (IN001). A mention that is decided stays so: a job whose worker died before the
-- queue knew gets the same answer again.
create or replace function ingredients.match(mention_id bigint, job_id uuid, attempt integer, resolver text) returns json
language plpgsql as $$
declare
    m ingredients.mention;
    r record;
    agreed bigint[];
begin
    select * into strict m from ingredients.mention where id = mention_id for update;
    if m.state in ('matched', 'on hold', 'not food') then
        return json_build_object('verdict', m.state, 'ingredient', m.ingredient, 'sure', m.sure, 'reason', m.reason);
    end if;
    if attempt <= m.faults then
        raise exception 'the kitchen is closed for a moment' using errcode = '57P03', hint = 'Try again later.';
    end if;
    select * into r from ingredients.resolve(m.raw);
    if r.verdict = 'no name' then
        raise exception '%', r.reason using errcode = 'IN001', hint = 'Ask its source what was meant.';
    end if;
    if r.verdict = 'on hold' and r.ingredient is not null then
        -- Two sources that come at the same time must see each other: the second waits until the first has committed.
        perform pg_advisory_xact_lock(hashtext('ingredients.match'), hashtext(r.normal));
        select array_agg(o.id order by o.id) into agreed from ingredients.mention o
        where o.state = 'on hold' and o.normal = r.normal and o.ingredient = r.ingredient and o.source <> m.source;
    end if;
    if agreed is not null then
        insert into ingredients.alias values (r.normal, r.ingredient, clock_timestamp()) on conflict do nothing;
        with confirmed as (
            update ingredients.mention o set state = 'matched', reason = 'a second source agrees', resolved_by = resolver,
                resolved_at = clock_timestamp()
            where o.normal = r.normal and o.ingredient = r.ingredient and o.state = 'on hold'
            returning o.*
        )
        insert into ingredients.trail (mention, job, attempt, what, ingredient, sure, reason, resolved_by)
        select c.id, c.job, match.attempt, 'confirmed', c.ingredient, c.sure, format('mention %s agrees', m.id), resolver
        from confirmed c;
        r.verdict := 'matched'; r.reason := format('mention %s agrees', agreed[1]);
    end if;
    update ingredients.mention o set state = r.verdict, normal = r.normal, ingredient = r.ingredient, sure = r.sure,
        reason = r.reason, resolved_by = resolver, resolved_at = clock_timestamp()
    where o.id = m.id;
    insert into ingredients.trail (mention, job, attempt, what, ingredient, sure, reason, resolved_by)
    values (m.id, job_id, match.attempt, r.verdict, r.ingredient, r.sure, r.reason, resolver);
    return json_build_object('verdict', r.verdict, 'ingredient', r.ingredient, 'sure', r.sure, 'reason', r.reason);
end
$$;

-- Notes an attempt that failed. Called in the transaction that tells Sluice so. A job of somebody else's has no mention.
create or replace function ingredients.note_failure(job_id uuid, attempt integer, resolver text, said text, dead boolean) returns void
language sql as $$
    insert into ingredients.trail (mention, job, attempt, what, reason, resolved_by)
    select id, job, note_failure.attempt, case when dead then 'failed' else 'tried' end, said, resolver
    from ingredients.mention where job = job_id;
    update ingredients.mention set state = 'failed', reason = said, resolved_by = resolver, resolved_at = clock_timestamp()
    where job = job_id and dead;
$$;

-- Opens mentions again whose jobs were requeued: who resolved them before is in the trail alone (E-11), which gets the
-- reason (E-12).
create or replace function ingredients.reopen(jobs uuid[], why text, who text) returns void
language sql as $$
    insert into ingredients.trail (mention, job, attempt, what, reason, resolved_by)
    select id, job, 0, 'retry asked', why, who from ingredients.mention where job = any(jobs);
    update ingredients.mention set state = 'open', reason = why, resolved_by = null, resolved_at = null where job = any(jobs);
$$;
