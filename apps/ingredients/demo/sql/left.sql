-- How far things are: mentions; those open; decided by Python, Node and Go; on hold.
select (select count(*) from ingredients.mention),
       (select count(*) from sluice.live),
       count(*) filter (where resolved_by like 'python %'), count(*) filter (where resolved_by like 'node %'),
       count(*) filter (where resolved_by like 'go %'), (select count(*) from ingredients.mention where state = 'on hold')
from ingredients.trail where what in ('matched', 'on hold', 'not food')
