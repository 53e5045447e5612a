-- Tells whether an extension is in this database, and in which schema; whether it could be made here; and which libraries
-- are loaded into the server, null where this role may not know.
-- $1 text extension
select
    (select n.nspname::text from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = $1::text) as schema,
    exists (select from pg_available_extensions a where a.name = $1::text) as available,
    (select s.setting from pg_settings s where s.name = 'shared_preload_libraries') as libraries
