-- Tells of something that was removed. $1: id; $2: conversation; $3: message; $4: category; $5: rule; $6: detector; $7: keyed hash; $8: replacement; $9: confidence; $10: now.
insert into sanitization_log (id, conversation_id, message_id, category, rule, detector, snippet_hash, replacement, confidence, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
