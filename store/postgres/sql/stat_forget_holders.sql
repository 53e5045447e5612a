-- Deletes holders whose last bucket is so old that they could not add it again.
-- $1 interval the largest age at which a holder may add a bucket
delete from sluice.stat_holder where at < now() - $1::interval
