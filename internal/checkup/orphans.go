package checkup

import (
	"fmt"

	"github.com/sluice-queue/sluice/health"
)

// Orphans counts rows of lives that lack their job, or that exist twice.
type Orphans struct {
	LiveWithoutJob int64
	DoneWithoutJob int64
	LiveAndDone    int64
}

// Add reports inconsistent lives and the remedy. Prefix is the prefix of table names; run returns
// the command that runs a statement.
func (r *Report) Add(o Orphans, prefix string, run func(statement string) string) {
	const check = "orphan"
	before := len(r.Health.Findings)
	live, done, job := prefix+"live", prefix+"done", prefix+"job"
	key := "id"
	if prefix == "sluice_" {
		key = "seq"
	}
	find := func(rows int64, what, why, table, condition string) {
		if rows > 0 {
			r.Find(health.SeverityError, check, fmt.Sprintf("%d rows of %s %s", rows, table, what), why, run("delete from "+table+" as x where "+condition))
		}
	}
	noJob := "not exists (select 1 from " + job + " j where j." + key + " = x." + key + ")"
	find(o.LiveWithoutJob, "have no job: somebody deleted it", "nothing can be run; a claim that comes upon one takes it away, others stay", live, noJob)
	find(o.DoneWithoutJob, "have no job: somebody deleted it", "lists and looks do not show them, and they are in counts", done, noJob)
	find(o.LiveAndDone, "have ended in "+done+" already", "a job that has ended would run again", live,
		"exists (select 1 from "+done+" d where d."+key+" = x."+key+" and d.generation = x.generation)")
	if len(r.Health.Findings) == before {
		r.Well(check, "every life has its job")
	}
}
