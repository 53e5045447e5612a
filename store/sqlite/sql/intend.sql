-- Notes a run that an engine is about to be asked for, and renews its claim. Another run than one that was intended
-- before is refused: that one may exist.
-- ?1 id   ?2 token   ?3 ref   ?4 engine   ?5 lease_until
update sluice_live
set ref = ?3, engine = ?4, run_of = ?1, lease_until = ?5
where seq = (select seq from sluice_job where id = ?1) and token = ?2 and state = 'claimed'
  and (engine is null or engine = ?4 and ref = ?3)
