-- Deletes silences that are over, and receivers that no process asks for any more.
-- $1 interval how long a receiver is kept
with silences as (
    delete from sluice.alert_silence where until <= now()
)
delete from sluice.alert_receiver where seen < now() - $1::interval
