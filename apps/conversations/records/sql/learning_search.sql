-- Finds learnings by words, the best first. $1: words, in the syntax of FTS5; $2: how many at the most.
select l.id, l.category, l.title, l.content, l.confidence, coalesce(u.status, ''), coalesce(u.ipfs_cid, '')
from learning_text t
join learning l on l.place = t.rowid
left join upload u on u.learning_id = l.id
where learning_text match $1
order by bm25(learning_text)
limit $2
