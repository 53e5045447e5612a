-- Locks a job, so that it does not end while another job is put behind it. No row: the job has ended.
-- $1 uuid id
select id from sluice.live where id = $1::uuid for key share
