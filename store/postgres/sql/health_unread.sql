-- Lists the tables and views of which this role may not select every column that readers may.
select c.name
from ({reader columns}) c
where not has_column_privilege(c.relation, c.column_name, 'select')
group by c.name
order by c.name
