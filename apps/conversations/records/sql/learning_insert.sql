-- Stores a learning, once by its hash. $1: id; $2: conversation; $3: category; $4: title; $5: content; $6: confidence; $7: tags; $8: messages; $9: hash; $10: now.
insert into learning (id, conversation_id, category, title, content, confidence, tags, source_message_ids, dedupe_hash, created_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (dedupe_hash) do nothing
returning id
