-- Draws places in orders for the jobs that are stored next.
-- $1 integer how many
select nextval('sluice.order_place') from generate_series(1, $1::integer)
