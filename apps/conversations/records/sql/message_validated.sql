-- Stores a message as AI left it, once. $1: its id; $2: content; $3: now.
update message set content = $2, validated_at = $3 where id = $1 and validated_at is null
returning id
