-- Removes the results of ended jobs. The statement stores an empty text instead of an empty blob, because drivers read
-- an empty blob as null.
-- ?1 [seq, generation] of each as a JSON array
update sluice_done
set result = ''
where (seq, generation) in (select json_extract(e.value, '$[0]'), json_extract(e.value, '$[1]') from json_each(?1) e) and length(result) > 0
