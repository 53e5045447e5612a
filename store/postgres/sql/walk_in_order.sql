-- Makes the planner choose walks along indexes until the transaction ends, row by row, and an index with the wanted
-- order. Statistics describe the past: an empty table may have a million rows a minute later. A plan that reads the
-- whole table, or sorts all waiting jobs, then looked cheap. Only a walk in order marks dead index entries, so that the
-- next walk steps over them. A sort that no plan can avoid looks expensive; jit is off, so that the server does not
-- compile it. PostgreSQL 12 has no incremental sort.
select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_mergejoin', 'off', true),
       set_config('enable_sort', 'off', true), set_config('jit', 'off', true),
       case when current_setting('server_version_num')::integer >= 130000 then set_config('enable_incremental_sort', 'off', true) end
