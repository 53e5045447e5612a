-- Lists the queues of a list that are stored.
-- ?1 names as JSON
select q.name from json_each(?1) wanted cross join sluice_queue q on q.name = wanted.value
