-- Takes back a key that a job was just given.
-- ?1 queue   ?2 key   ?3 job id
delete from sluice_job_key where queue = ?1 and key = ?2 and job_id = ?3
