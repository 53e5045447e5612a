-- Stores how far learnings were extracted. $1: the conversation's id; $2: the place of the last message; $3: how far it was before; $4: now.
update conversation set extracted_to = $2, updated_at = $4 where id = $1 and extracted_to = $3
returning id
