-- Lists the indexes of Sluice's tables: whether they work, their size, and the estimated size of a new index. The
-- estimate is the number of rows times the average width of the columns, in pages that are 90 % full. For an index
-- below $1 bytes the estimate is its size. A column that was never analyzed counts as 32 bytes wide.
-- $1 bigint the smallest size in bytes to estimate
select
    c.relname::text as name,
    t.relname::text as "table",
    i.indisvalid and i.indisready and i.indislive as valid,
    size.bytes,
    case when size.bytes < $1::bigint or m.amname <> 'btree' or c.reltuples < 0 then size.bytes
         else least(size.bytes, ceil(c.reltuples * (4 + 8 * ceil((8 + w.width) / 8.0)) / (0.9 * (page.bytes - 40)) + 2)::bigint * page.bytes)
    end as estimate
from pg_index i
join pg_class c on c.oid = i.indexrelid
join pg_class t on t.oid = i.indrelid
join pg_am m on m.oid = c.relam
cross join lateral (select pg_relation_size(c.oid) as bytes) size
cross join lateral (select current_setting('block_size')::bigint as bytes) page
left join lateral (
    select sum(case when a.attlen > 0 then a.attlen else coalesce(s.avg_width, 32) end) as width
    from pg_attribute a
    left join pg_stats s on s.schemaname = 'sluice' and s.tablename = t.relname and s.attname = a.attname and not s.inherited
    where a.attrelid = c.oid and size.bytes >= $1::bigint
) w on true
where t.relnamespace = 'sluice'::regnamespace and t.relkind = 'r'
order by t.relname, c.relname
