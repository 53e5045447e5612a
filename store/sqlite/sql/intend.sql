-- Records the run that a dispatcher is about to start at an engine, and renews the claim. The statement refuses a run
-- that differs from an earlier intended run, because that run may exist.
-- ?1 id   ?2 token   ?3 ref   ?4 engine   ?5 lease_until
update sluice_live
set ref = ?3, engine = ?4, run_of = ?1, lease_until = ?5
where seq = (select seq from sluice_job where id = ?1) and token = ?2 and state = 'claimed'
  and (engine is null or engine = ?4 and ref = ?3)
