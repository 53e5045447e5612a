-- Deletes the audit entries of a level after one seal up to another.
-- ?1 level   ?2 behind seal   ?3 up to seal
delete from sluice_audit
where seq > coalesce((select s.upto from sluice_audit_seal s where s.no = ?2), -9223372036854775808)
  and seq <= coalesce((select s.upto from sluice_audit_seal s where s.no = ?3), 0)
  and (object = 'job' and event in ('enqueue', 'claim', 'dispatch', 'complete', 'retry', 'release')) = (?1 = 'full')
