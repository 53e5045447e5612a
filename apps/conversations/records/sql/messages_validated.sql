-- Lists the messages of a conversation that AI has seen. $1: the conversation's id.
select place, id, role, content from message where conversation_id = $1 and validated_at is not null order by place
