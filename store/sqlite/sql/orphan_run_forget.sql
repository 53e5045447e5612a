-- Forgets a run of an ended job, which has ended too. A trigger tells the tenant queue of its tenant that there is room.
-- ?1 job   ?2 ref
delete from sluice_orphan_run where job_id = ?1 and ref = ?2 returning queue
