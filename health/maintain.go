package health

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Task is work on the store itself that a person can start.
type Task string

// The tasks.
const (
	// TaskCheckpoint brings the write-ahead log of SQLite into the file, and cuts the log.
	TaskCheckpoint Task = "checkpoint"
	// TaskVacuum gives the free pages of a SQLite file back to the disk. In PostgreSQL, TaskVacuum removes the dead rows of
	// each table, and counts anew for the planner.
	TaskVacuum Task = "vacuum"
	// TaskRetention deletes the finished jobs that their queues keep no longer, as upkeep does by itself.
	TaskRetention Task = "retention"
)

// Tasks lists the tasks.
func Tasks() []Task { return []Task{TaskCheckpoint, TaskVacuum, TaskRetention} }

// Maintained is what came of a task. Of a dry run, it is what the task would do.
type Maintained struct {
	// Task is the task. DryRun says that nothing was changed.
	Task   Task `json:"task"`
	DryRun bool `json:"dry_run"`
	// Rows counts the deleted jobs, or the removed dead rows, by the server's estimate.
	Rows int64 `json:"rows"`
	// Bytes is by how much the log, the file or the tables are smaller.
	Bytes int64 `json:"bytes"`
	// Parts are the same by table, or by queue and outcome. Empty: the store has no parts.
	Parts []MaintainedPart `json:"parts,omitempty"`
	// Left says in sentences which part is left, and why. Empty: nothing is.
	Left []string `json:"left,omitempty"`
}

// MaintainedPart is a part of the store, such as a table.
type MaintainedPart struct {
	// Name names the part. Rows and Bytes are its share of the whole.
	Name  string `json:"name"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

// Add adds a part to the whole.
func (m *Maintained) Add(part MaintainedPart) {
	m.Rows, m.Bytes = m.Rows+part.Rows, m.Bytes+part.Bytes
	m.Parts = append(m.Parts, part)
}

// Overdue counts the finished jobs of a queue with one outcome whose retention is over.
type Overdue struct {
	Queue   string
	Outcome sluice.State
	Jobs    int
}

// Maintainer is the port of maintenance. SQLite, PostgreSQL and memory implement it beside sluice.Store.
type Maintainer interface {
	// Maintain carries out a checkpoint or a vacuum. Maintain stops at the deadline of ctx, and Left then says what it has
	// not done. A task that makes no sense for the kind of store is a [sluice.ErrInvalid].
	Maintain(ctx context.Context, task Task, dryRun bool) (Maintained, error)
	// Overdue counts the jobs that Prune of [sluice.Store] would delete now, at most limit of them in all.
	Overdue(ctx context.Context, limit int) ([]Overdue, error)
}

// ServerMaintainer is a store behind a server that does the maintenance, and audits it.
type ServerMaintainer interface {
	// MaintainThere has the server carry out a task.
	MaintainThere(ctx context.Context, task Task, dryRun bool, act sluice.Act) (Maintained, error)
}

const (
	// overdueLimit is how far a dry run counts jobs.
	overdueLimit = 10_000
	// pruneBatch is how many jobs one transaction of retention deletes.
	pruneBatch = 1000
	// pruneRest is the longest rest between these transactions. Busy queues go first.
	pruneRest = 20 * time.Millisecond
	// actsKept is how many past entries are searched for an act that comes again.
	actsKept = 100
)

// Maintain carries out a task within three quarters of the time until the deadline of ctx, and audits it. A dry run
// changes nothing and leaves no entry.
func Maintain(ctx context.Context, store sluice.Store, task Task, dryRun bool, act sluice.Act) (Maintained, error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return Maintained{}, err
	}
	if err := act.Check(); err != nil {
		return Maintained{}, err
	}
	if !slices.Contains(Tasks(), task) {
		return Maintained{}, feature.Invalid("task", fmt.Sprintf("%.40q must be checkpoint, vacuum or retention", task))
	}
	if there, is := sluice.StoreAs[ServerMaintainer](store); is {
		return there.MaintainThere(ctx, task, dryRun, act)
	}
	port, err := feature.Port[Maintainer](store, "maintains nothing")
	if err != nil {
		return Maintained{}, err
	}
	if before, found, err := didBefore(ctx, store, act.ID); err != nil || found {
		return before, err
	}
	out, err := carryOut(ctx, store, port, task, dryRun)
	if err != nil || dryRun {
		return out, err
	}
	after, _ := json.Marshal(out) // it has numbers and texts
	entry := sluice.AuditEntry{Object: audit.ObjectStore, Name: string(task), Event: audit.EventMaintain, Actor: act.By, Reason: act.Reason, ActID: act.ID, After: after}
	if err := store.AppendAudit(ctx, []sluice.AuditEntry{entry}); err != nil {
		return out, fmt.Errorf("%s was done, but the audit does not have it: %w", task, err)
	}
	return out, nil
}

// didBefore returns what came of an act that comes again after a lost answer.
func didBefore(ctx context.Context, store sluice.Store, id sluice.ID) (before Maintained, found bool, err error) {
	entries, err := store.Audit(ctx, sluice.AuditFilter{Object: audit.ObjectStore, Limit: actsKept})
	if err != nil {
		return before, false, err
	}
	for _, e := range entries {
		if e.ActID == id {
			return before, true, json.Unmarshal(e.After, &before)
		}
	}
	return before, false, nil
}

// carryOut does a task, and leaves a quarter of the time for the audit and the answer.
func carryOut(ctx context.Context, store sluice.Store, port Maintainer, task Task, dryRun bool) (out Maintained, err error) {
	if deadline, bounded := ctx.Deadline(); bounded {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Until(deadline)*3/4)
		defer stop()
	}
	switch {
	case task != TaskRetention:
		out, err = port.Maintain(ctx, task, dryRun)
	case dryRun:
		out, err = overdue(ctx, port)
	default:
		out, err = retain(ctx, store)
	}
	out.Task, out.DryRun = task, dryRun
	return out, err
}

// overdue says which jobs retention would delete.
func overdue(ctx context.Context, port Maintainer) (out Maintained, err error) {
	found, err := port.Overdue(ctx, overdueLimit)
	for _, o := range found {
		out.Add(MaintainedPart{Name: "queue " + o.Queue + ", " + string(o.Outcome), Rows: int64(o.Jobs)})
	}
	if out.Rows >= overdueLimit {
		out.Left = []string{"there may be more jobs: counting stopped"}
	}
	return out, err
}

// retain deletes jobs until none is left, or until ctx ends.
func retain(ctx context.Context, store sluice.Store) (out Maintained, err error) {
	for next := ""; ; {
		begun := time.Now()
		pruned, err := store.Prune(ctx, next, pruneBatch)
		if err != nil && ctx.Err() == nil {
			return out.stopped(err)
		}
		out.Rows += int64(pruned.Deleted)
		if next = pruned.Next; err == nil && next == "" {
			return out, nil
		}
		select {
		case <-ctx.Done():
			out.Left = []string{"the time was over before all was deleted: upkeep goes on"}
			return out, nil
		case <-time.After(min(time.Since(begun), pruneRest)):
		}
	}
}

// stopped returns the error of a task. If a part was done, the audit needs that part, so Left has the error.
func (m Maintained) stopped(err error) (Maintained, error) {
	if m.Rows == 0 {
		return m, err
	}
	m.Left = append(m.Left, "it stopped: "+sluice.Brief(err.Error()))
	return m, nil
}
