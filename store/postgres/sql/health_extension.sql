-- Returns the schema of an extension in this database, whether the server offers it, and which libraries the server has
-- loaded. The libraries are null if this role may not see them.
-- $1 text extension
select
    (select n.nspname::text from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = $1::text) as schema,
    exists (select from pg_available_extensions a where a.name = $1::text) as available,
    (select s.setting from pg_settings s where s.name = 'shared_preload_libraries') as libraries
