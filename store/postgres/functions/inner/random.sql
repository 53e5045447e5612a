-- Returns 128 random bits as a UUID, apart from the bits of its version. Before PostgreSQL 13, others can guess the
-- bits; see docs/sql.md.
do $random$
begin
    if to_regprocedure('pg_catalog.gen_random_uuid()') is not null then
        execute 'create or replace function sluice._random() returns uuid language sql volatile set search_path = pg_catalog, pg_temp
            as ''select gen_random_uuid()''';
    else
        execute 'create or replace function sluice._random() returns uuid language sql volatile set search_path = pg_catalog, pg_temp
            as ''select md5(random()::text || clock_timestamp()::text || pg_backend_pid()::text || random()::text)::uuid''';
    end if;
end
$random$;
