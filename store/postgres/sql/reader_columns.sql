-- Lists the columns of Sluice's tables and views that readers may select. Only this statement defines the secret
-- columns: payloads, results, checkpoints and tokens by name, and all bytea columns except the hashes of the audit.
-- $1 text[] the tables and views that Sluice makes
select c.oid as relation, c.relname::text as name, a.attname::text as column_name, a.attacl as acl
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relnamespace = 'sluice'::regnamespace and c.relkind in ('r', 'p', 'v') and c.relname = any ($1::text[])
  and a.attname <> all ('{payload,payload_text,result,result_text,checkpoint,token}'::text[])
  and (a.atttypid <> 'bytea'::regtype or c.relname in ('audit_seal', 'audit_batch'))
