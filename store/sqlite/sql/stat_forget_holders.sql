-- Deletes holders whose last bucket is so old that they could not add it again.
-- ?1 before
delete from sluice_stat_holder where at < ?1
