-- Returns the server's clock, and the estimated number of unfinished jobs; below 0: not known.
select now(), c.reltuples::bigint from pg_class c where c.oid = 'sluice.live'::regclass
