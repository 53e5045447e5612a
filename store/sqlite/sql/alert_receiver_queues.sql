-- Lists the queues of receivers, by name.
select queue from sluice_alert_receiver order by queue
