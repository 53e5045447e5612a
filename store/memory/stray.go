package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/engine"
)

// stray is an orphan run. Limits count it under the limit key and with the cost that its job had when the run began; since then, the
// job may have been requeued and edited.
type stray struct {
	engine.OrphanRun
	limitKey string
	cost     int
}

// noteStray records the run of a job that is about to end before its engine reported the run's
// outcome. The run still counts as in flight. Without an engine, noteStray does nothing.
func (s *Store) noteStray(j *job) {
	if j.Engine == "" {
		return
	}
	known := func(run stray) bool { return run.JobID == j.ID && run.Ref == j.Ref }
	if slices.ContainsFunc(s.strays, known) {
		return
	}
	s.strays = append(s.strays, stray{engine.OrphanRun{
		JobID: j.ID, Queue: j.Queue, Engine: j.Engine, Ref: j.Ref, CancelledAt: s.now(), Tenant: j.Tenant, Generation: j.Generation,
		ClaimedAt: j.ClaimedAt, Started: j.State == sluice.StateDispatched,
	}, j.LimitKey, j.Cost})
	slices.SortFunc(s.strays, func(a, b stray) int { return inTurn(a.OrphanRun, b.OrphanRun) })
	l := s.backlog(j.Queue)
	l.stray++
	l.held[j.Tenant]++
}

// inTurn orders orphan runs for lists.
func inTurn(a, b engine.OrphanRun) int {
	return cmp.Or(a.CancelledAt.Compare(b.CancelledAt), bytes.Compare(a.JobID[:], b.JobID[:]), cmp.Compare(a.Ref, b.Ref))
}

// OrphanRuns lists orphan runs: runs that may be open although their jobs have ended.
func (s *Store) OrphanRuns(ctx context.Context, queue string, after engine.OrphanRun, limit int) ([]engine.OrphanRun, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var found []engine.OrphanRun
	for _, run := range s.strays {
		if run.Queue == queue && inTurn(run.OrphanRun, after) > 0 && len(found) < limit {
			found = append(found, run.OrphanRun)
		}
	}
	return found, nil
}

// straysOf lists the orphan runs of a job.
func (s *Store) straysOf(id sluice.ID) []engine.OrphanRun {
	var found []engine.OrphanRun
	for _, run := range s.strays {
		if run.JobID == id {
			found = append(found, run.OrphanRun)
		}
	}
	return found
}

// waitsForRun reports whether a run of a job may be open, and no person has allowed the job to run
// beside it.
func (s *Store) waitsForRun(id sluice.ID) bool {
	return slices.ContainsFunc(s.strays, func(run stray) bool { return run.JobID == id && !run.Beside })
}

// ForgetOrphanRuns deletes orphan runs that have ended, and unblocks the jobs that waited for them.
func (s *Store) ForgetOrphanRuns(ctx context.Context, runs []engine.OrphanRun) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	var ended []stray
	s.strays = slices.DeleteFunc(s.strays, func(known stray) bool {
		over := slices.ContainsFunc(runs, func(run engine.OrphanRun) bool { return run.JobID == known.JobID && run.Ref == known.Ref })
		if over {
			ended = append(ended, known)
		}
		return over
	})
	for _, run := range ended {
		l := s.backlog(run.Queue)
		l.stray--
		l.land(run.Tenant)
		s.signal(sluice.Signal{Queue: run.Queue})
		s.lookForRun(run.JobID)
	}
	return nil
}

// lookForRun unblocks a job that waited for an orphan run of its own, once no such run is left.
func (s *Store) lookForRun(id sluice.ID) (changed bool) {
	j := s.jobs[id]
	if j == nil || !j.live || j.BlockedBy != id || j.hold != nil || j.parked || s.waitsForRun(id) {
		return false
	}
	s.look(j)
	return true
}

// letBeside records that a person allows a job to run beside its orphan runs.
func (s *Store) letBeside(j *job, act sluice.Act) {
	s.markStrays(j.ID, audit.EventBeside, act, func(run *engine.OrphanRun) *bool { return &run.Beside })
}

// markStrays sets a mark on each orphan run of a job, audits the new marks, and returns the number
// of runs.
func (s *Store) markStrays(id sluice.ID, event sluice.Event, act sluice.Act, mark func(*engine.OrphanRun) *bool) (found int) {
	for i := range s.strays {
		run := &s.strays[i].OrphanRun
		if run.JobID != id {
			continue
		}
		found++
		if m := mark(run); *m {
			continue
		}
		*mark(run) = true
		after, err := json.Marshal(map[string]string{"engine": run.Engine, "ref": run.Ref})
		if err != nil {
			after = nil // cannot happen: a map of strings always encodes
		}
		s.add(sluice.AuditEntry{
			Object: audit.ObjectJob, Name: run.Queue, Event: event, JobID: id, Generation: run.Generation,
			Actor: act.By, Reason: act.Reason, After: after, ActID: act.ID,
		})
	}
	return found
}

// Terminate marks the orphan runs of jobs, so that upkeep ends them by force.
func (s *Store) Terminate(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	errs := make([]error, len(ids))
	for i, id := range ids {
		switch found := s.markStrays(id, audit.EventTerminate, act, func(run *engine.OrphanRun) *bool { return &run.Terminate }); {
		case found > 0, s.did(act, id):
		case s.jobs[id] == nil:
			errs[i] = sluice.ErrNotFound
		default:
			errs[i] = fmt.Errorf("%w: no run of the job is stray", sluice.ErrNotAllowed)
		}
	}
	return errs, nil
}
