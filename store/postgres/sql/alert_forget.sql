-- Forgets silences that are over, and receivers that nobody asks for any more, with what they were to be told.
-- $1 interval how long a receiver is kept
with silences as (
    delete from sluice.alert_silence where until <= now()
), receivers as (
    delete from sluice.alert_receiver where seen < now() - $1::interval returning name
)
delete from sluice.alert_notice n using receivers r where n.receiver = r.name
