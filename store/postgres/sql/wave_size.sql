-- The server's clock, and about how many unfinished jobs there are; less than 0: nobody knows.
select now(), c.reltuples::bigint from pg_class c where c.oid = 'sluice.live'::regclass
