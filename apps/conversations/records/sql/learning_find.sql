-- Looks a learning up, as it is uploaded. $1: its id.
select id, category, title, content, confidence, tags, dedupe_hash from learning where id = $1
