-- Which copy of SQLite runs a transaction, and on what file. Two copies of one version differ by how they were compiled.
select sqlite_source_id() || coalesce((select ' ' || group_concat(compile_options, ' ') from pragma_compile_options), ''),
       coalesce((select file from pragma_database_list where name = 'main'), '')
