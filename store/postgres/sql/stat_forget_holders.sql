-- Forgets holders whose last slot is so old that they could not add it again.
-- $1 interval how old a slot may be that is added
delete from sluice.stat_holder where at < now() - $1::interval
