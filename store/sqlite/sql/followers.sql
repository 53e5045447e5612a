-- Lists the followers by name.
-- ?1 name, empty: all
select name, queue, states, statement from sluice_follower where ?1 in ('', name) order by name
