-- Tells from which message on learnings are to be extracted. $1: the conversation's id.
select extracted_to from conversation where id = $1
