-- Records again the unfinished jobs that a requeued job must run after.
-- ?1 seq
insert or ignore into sluice_after (after_id, seq, rule)
select j.id, ?1, case
    when instr(w.after_failure, given.value || '=cancel') > 0 then 'cancel'
    when instr(w.after_failure, given.value || '=run') > 0 then 'run'
    when instr(w.after_failure, given.value || '=wait') > 0 then 'wait'
    else substr(w.after_failure, 1, instr(w.after_failure || ' ', ' ') - 1) end
from sluice_job w, json_each(w.after) given
join sluice_job j on j.id = unhex(replace(given.value, '-', ''))
join sluice_live l on l.seq = j.seq
where w.seq = ?1 and l.seq <> ?1
