-- To the end of the transaction, every plan is a walk along indexes, one row after the other, and rows that are wanted in an
-- order are read along an index that has it. Statistics tell of a moment that is over: a table that was nearly empty has
-- a million rows a minute later, and a plan that reads all of it, or sorts what waits, looked cheap by them.
-- Only a walk in order marks dead entries, so that the next one steps over them.
-- A sort that nothing can avoid seems dear then. Without jit it is not compiled for that.
-- PostgreSQL 12 has no incremental sort.
select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_mergejoin', 'off', true),
       set_config('enable_sort', 'off', true), set_config('jit', 'off', true),
       case when current_setting('server_version_num')::integer >= 130000 then set_config('enable_incremental_sort', 'off', true) end
