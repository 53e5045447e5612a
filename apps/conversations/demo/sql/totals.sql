-- Counts what is there at the end, and what is not as it must be.
select
    (select count(*) from conversation),
    (select count(*) from message),
    (select count(*) from message where validated_at is null),
    (select count(*) from conversation c where extracted_to <> (select max(place) from message m where m.conversation_id = c.id)),
    (select count(*) from learning),
    (select count(*) from upload where status = 'confirmed'),
    (select count(*) from sluice_jobs where state <> 'completed'),
    (select coalesce(sum(attempts), 0) from sluice_jobs),
    (select coalesce(sum(recoveries), 0) from sluice_jobs),
    (select count(*) from sanitization_log where detector = 'rules'),
    (select count(*) from sanitization_log where detector = 'ai')
