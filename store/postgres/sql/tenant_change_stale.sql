-- Returns whether a queue has tenant changes that no claim has read for a while, and the instant before which the
-- statement looked.
-- $1 text queue   $2 timestamptz the first instant to read   $3 interval the while
select (select true from sluice.tenant_change h where h.queue = $1::text and h.at >= $2::timestamptz and h.at < now() - $3::interval
        order by h.at limit 1) is not null,
       now() - $3::interval
