-- Lists the numbers of roles that are gone and have grants.
select distinct g.role::oid::text as role
from sluice.queue_grant g
where not exists (select from pg_roles r where r.oid = g.role)
order by role
