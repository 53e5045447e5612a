-- Lists the queues of the receivers that a process still asks for, by name.
-- $1 interval how long a receiver is kept
select r.queue from sluice.alert_receiver r where r.seen >= now() - $1::interval order by r.queue collate "C"
