-- Stores a sanitized message, once. $1: its id; $2: the conversation's; $3: event; $4: role; $5: content; $6: version of the rules; $7: when it was said.
insert into message (id, conversation_id, event, role, content, version, created_at) values ($1, $2, $3, $4, $5, $6, $7)
on conflict (id) do nothing
returning id
