-- To the end of the transaction, rows that are wanted in an order are read along an index that has it, and not sorted.
-- A vacuum that finds nearly nothing leaves statistics by which sorting costs less than a walk. Such a plan reads all that
-- has died since, at every claim: only a walk in order marks dead entries, so that the next one steps over them.
-- A sort that nothing can avoid seems dear then. Without jit it is not compiled for that.
-- PostgreSQL 12 has no incremental sort.
select set_config('enable_sort', 'off', true), set_config('jit', 'off', true),
       case when current_setting('server_version_num')::integer >= 130000 then set_config('enable_incremental_sort', 'off', true) end
