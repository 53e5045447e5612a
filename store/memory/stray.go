package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluice-queue/sluice"
)

// noteStray notes the run of a job that is about to end without its engine's word, if one may exist. The run stays in
// flight.
func (s *Store) noteStray(j *job) {
	if j.Engine == "" {
		return
	}
	known := func(run sluice.StrayRun) bool { return run.JobID == j.ID && run.Ref == j.Ref }
	if slices.ContainsFunc(s.strays, known) {
		return
	}
	s.strays = append(s.strays, sluice.StrayRun{
		JobID: j.ID, Queue: j.Queue, Engine: j.Engine, Ref: j.Ref, CancelledAt: s.now(), Tenant: j.Tenant, Generation: j.Generation,
		ClaimedAt: j.ClaimedAt, Started: j.State == sluice.StateDispatched,
	})
	slices.SortFunc(s.strays, inTurn)
	l := s.lane(j.Queue)
	l.stray++
	l.held[j.Tenant]++
}

// inTurn is the order in which runs are listed.
func inTurn(a, b sluice.StrayRun) int {
	return cmp.Or(a.CancelledAt.Compare(b.CancelledAt), bytes.Compare(a.JobID[:], b.JobID[:]), cmp.Compare(a.Ref, b.Ref))
}

// StrayRuns lists runs whose jobs were cancelled.
func (s *Store) StrayRuns(ctx context.Context, queue string, after sluice.StrayRun, limit int) ([]sluice.StrayRun, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var found []sluice.StrayRun
	for _, run := range s.strays {
		if run.Queue == queue && inTurn(run, after) > 0 && len(found) < limit {
			found = append(found, run)
		}
	}
	return found, nil
}

// straysOf lists the stray runs of a job.
func (s *Store) straysOf(id sluice.ID) []sluice.StrayRun {
	var found []sluice.StrayRun
	for _, run := range s.strays {
		if run.JobID == id {
			found = append(found, run)
		}
	}
	return found
}

// waitsForRun reports whether a run of a job may be open, and nobody has let the job run beside it.
func (s *Store) waitsForRun(id sluice.ID) bool {
	return slices.ContainsFunc(s.strays, func(run sluice.StrayRun) bool { return run.JobID == id && !run.Beside })
}

// ForgetStrayRuns strikes runs from what StrayRuns lists, and lets the jobs go that waited for them.
func (s *Store) ForgetStrayRuns(ctx context.Context, runs []sluice.StrayRun) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	var ended []sluice.StrayRun
	s.strays = slices.DeleteFunc(s.strays, func(stray sluice.StrayRun) bool {
		over := slices.ContainsFunc(runs, func(run sluice.StrayRun) bool { return run.JobID == stray.JobID && run.Ref == stray.Ref })
		if over {
			ended = append(ended, stray)
		}
		return over
	})
	for _, run := range ended {
		l := s.lane(run.Queue)
		l.stray--
		l.land(run.Tenant)
		s.signal(sluice.Signal{Queue: run.Queue})
		s.lookForRun(run.JobID)
	}
	return nil
}

// lookForRun looks at a job again that may have waited for a run of its own.
func (s *Store) lookForRun(id sluice.ID) (changed bool) {
	j := s.jobs[id]
	if j == nil || !j.live || j.BlockedBy != id || s.waitsForRun(id) {
		return false
	}
	s.look(j)
	return true
}

// letBeside notes that a person lets a job run beside its stray runs.
func (s *Store) letBeside(j *job, act sluice.Act) {
	s.markStrays(j.ID, sluice.EventBeside, act, func(run *sluice.StrayRun) *bool { return &run.Beside })
}

// markStrays sets a mark of the stray runs of a job, and tells the audit. It says how many there are.
func (s *Store) markStrays(id sluice.ID, event sluice.Event, act sluice.Act, mark func(*sluice.StrayRun) *bool) (found int) {
	for i := range s.strays {
		run := &s.strays[i]
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
			after = nil // two strings are always JSON
		}
		s.add(sluice.AuditEntry{
			Object: sluice.ObjectJob, Name: run.Queue, Event: event, JobID: id, Generation: run.Generation,
			Actor: act.By, Reason: act.Reason, After: after, ActID: act.ID,
		})
	}
	return found
}

// Terminate marks the stray runs of jobs, so that upkeep ends them by force.
func (s *Store) Terminate(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	errs := make([]error, len(ids))
	for i, id := range ids {
		switch found := s.markStrays(id, sluice.EventTerminate, act, func(run *sluice.StrayRun) *bool { return &run.Terminate }); {
		case found > 0, s.did(act, id):
		case s.jobs[id] == nil:
			errs[i] = sluice.ErrNotFound
		default:
			errs[i] = fmt.Errorf("%w: no run of the job is stray", sluice.ErrNotAllowed)
		}
	}
	return errs, nil
}
