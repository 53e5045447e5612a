-- Forgets holders whose last bucket is so old that they could not add it again.
-- $1 interval how old a bucket may be that is added
delete from sluice.stat_holder where at < now() - $1::interval
