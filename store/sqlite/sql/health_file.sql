-- Reads the facts of the file: SQLite's version, the journal mode, the numbers of pages and of free pages, the page
-- size, and the schema step.
select sqlite_version(),
    (select journal_mode from pragma_journal_mode),
    (select page_count from pragma_page_count),
    (select freelist_count from pragma_freelist_count),
    (select page_size from pragma_page_size),
    (select max(version) from sluice_migration)
