-- Lists messages of a conversation that AI has not seen. $1: the conversation's id.
select place, id, role, content from message where conversation_id = $1 and validated_at is null order by place
