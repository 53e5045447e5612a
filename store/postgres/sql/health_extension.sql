-- Tells whether an extension is in this database, and in which schema; whether its library is loaded into the server, as
-- far as this role may see; and whether it could be made here.
-- $1 text extension
select
    (select n.nspname::text from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = $1::text) as schema,
    coalesce(current_setting('shared_preload_libraries', true), '') as libraries,
    $1::text = any(string_to_array(replace(coalesce(current_setting('shared_preload_libraries', true), ''), ' ', ''), ',')) as loaded,
    exists (select from pg_available_extensions a where a.name = $1::text) as available
