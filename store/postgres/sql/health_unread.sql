-- Lists the tables and views with columns for readers that this role may not select.
select c.name
from ({reader columns}) c
where not has_column_privilege(c.relation, c.column_name, 'select')
group by c.name
order by c.name
