-- 128 bits by chance, but for those that say so. Before PostgreSQL 13 they can be guessed; see docs/sql.md.
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
