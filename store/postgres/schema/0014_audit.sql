-- 0014 The audit is only added to: seals chain its entries, and no role keeps the right to change them.
-- locks: audit, for a moment.
-- works with programs from: 8

-- The chain over the audit: each seal covers the entries above the one before it, up to `upto`, by level, and says up to
-- which seal the entries of a level are gone by retention. Package audit says what the hashes are of.
create table sluice.audit_seal (
    no              bigint      primary key check (no > 0),
    at              timestamptz not null,
    upto            bigint      not null,
    previous        bytea       not null,
    notable_entries bigint      not null,
    notable_hash    bytea       not null,
    notable_gone    bigint      not null,
    notable_keep_ms bigint      not null check (notable_keep_ms >= 0),
    full_entries    bigint      not null,
    full_hash       bytea       not null,
    full_gone       bigint      not null,
    full_keep_ms    bigint      not null check (full_keep_ms >= 0),
    hash            bytea       not null
);

-- What a seal covers, entry by entry, so that the one that was changed can be named.
create table sluice.audit_batch (
    seal  bigint not null,
    level text   not null check (level in ('notable', 'full')),
    body  bytea  not null,
    primary key (seal, level)
);
alter table sluice.audit_batch alter column body set storage external; -- it is as good as random: packing it is in vain

-- Refuses to change what is only added to, whoever tries.
create function sluice._audit_stays() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $function$
begin
    raise exception 'sluice: table %: entries of the audit are only added', tg_table_name using errcode = 'insufficient_privilege';
end
$function$;

-- Refuses to delete more than the last seal says is gone by retention. The level full has what is written only because a
-- queue's `audit` is full.
create function sluice._audit_goes() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $function$
declare
    last   sluice.audit_seal;
    beyond boolean;
begin
    select s.* into last from sluice.audit_seal s order by s.no desc limit 1;
    if tg_table_name = 'audit' then
        select exists (
            select from gone g
            where g.seq > coalesce((
                select s.upto from sluice.audit_seal s
                where s.no = case when g.object = 'job' and g.event in ('enqueue', 'claim', 'dispatch', 'complete', 'retry', 'release') then last.full_gone else last.notable_gone end
            ), 0)
        ) into beyond;
    elsif tg_table_name = 'audit_batch' then
        select exists (
            select from gone g where g.seal > coalesce(case g.level when 'full' then last.full_gone else last.notable_gone end, 0)
        ) into beyond;
    else
        select exists (select from gone g where last.no is null or g.no >= least(last.notable_gone, last.full_gone)) into beyond;
    end if;
    if beyond then
        raise exception 'sluice: table %: entries of the audit are only added; retention deletes those that a seal says are gone', tg_table_name
            using errcode = 'insufficient_privilege';
    end if;
    return null;
end
$function$;

create trigger audit_stays before update or truncate on sluice.audit for each statement execute function sluice._audit_stays();
create trigger audit_stays before update or truncate on sluice.audit_seal for each statement execute function sluice._audit_stays();
create trigger audit_stays before update or truncate on sluice.audit_batch for each statement execute function sluice._audit_stays();
create trigger audit_goes after delete on sluice.audit referencing old table as gone for each statement execute function sluice._audit_goes();
create trigger audit_goes after delete on sluice.audit_seal referencing old table as gone for each statement execute function sluice._audit_goes();
create trigger audit_goes after delete on sluice.audit_batch referencing old table as gone for each statement execute function sluice._audit_goes();

-- Deletes the entries of a level that came after one seal, up to another, and what only they needed. It runs with the
-- rights of the owner: the roles of programs may add to the audit and not delete. The triggers see to it that no more is
-- deleted than the last seal says.
create function sluice._forget_audit(of_level text, after_seal bigint, to_seal bigint) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
    low     bigint := coalesce((select s.upto from sluice.audit_seal s where s.no = after_seal), -9223372036854775808);
    high    bigint := coalesce((select s.upto from sluice.audit_seal s where s.no = to_seal), 0);
    deleted bigint;
begin
    delete from sluice.audit a
    where a.seq > low and a.seq <= high
      and (a.object = 'job' and a.event in ('enqueue', 'claim', 'dispatch', 'complete', 'retry', 'release')) = (of_level = 'full');
    get diagnostics deleted = row_count;
    delete from sluice.audit_batch b where b.seal > after_seal and b.seal <= to_seal and b.level = of_level;
    delete from sluice.audit_seal s
    where s.no < (select least(l.notable_gone, l.full_gone) from sluice.audit_seal l order by l.no desc limit 1);
    return deleted;
end
$function$;
revoke all on function sluice._forget_audit(text, bigint, bigint) from public;

-- What roles were granted on every table is taken back for these three, and whoever adds entries may call the function.
do $do$
declare
    r text;
begin
    for r in
        select distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
        from pg_class c cross join aclexplode(c.relacl) a
        where c.oid in ('sluice.audit'::regclass, 'sluice.audit_seal'::regclass, 'sluice.audit_batch'::regclass) and a.grantee <> c.relowner
    loop
        execute 'revoke update, delete, truncate on sluice.audit, sluice.audit_seal, sluice.audit_batch from ' || r;
    end loop;
    for r in
        select distinct quote_ident(pg_get_userbyid(a.grantee))
        from pg_class c cross join aclexplode(c.relacl) a
        where c.oid = 'sluice.audit'::regclass and a.grantee not in (0, c.relowner) and a.privilege_type = 'INSERT'
    loop
        execute 'grant select, insert on sluice.audit_seal, sluice.audit_batch to ' || r;
        execute 'grant execute on function sluice._forget_audit(text, bigint, bigint) to ' || r;
    end loop;
end
$do$;
