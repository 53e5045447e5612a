-- Makes sure that a job does not end while another is put behind it. No row: it has ended.
-- $1 uuid id
select id from sluice.live where id = $1::uuid for key share
