-- Identifies the copy of SQLite that runs a transaction, and its file. Two copies of one version differ by their
-- compile options.
select sqlite_source_id() || coalesce((select ' ' || group_concat(compile_options, ' ') from pragma_compile_options), ''),
       coalesce((select file from pragma_database_list where name = 'main'), '')
