package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/internal/flow"
)

// Job returns one job with its payload.
func (s *Store) Job(ctx context.Context, id sluice.ID) (sluice.Job, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return sluice.Job{}, err
	}
	defer leave()
	j := s.jobs[id]
	if j == nil {
		return sluice.Job{}, sluice.ErrNotFound
	}
	out := j.copy()
	if hold := s.keys[queueKey{j.Queue, j.Key}]; hold.job == id && s.holds(hold) {
		out.KeyScope = sluice.WhileUnfinished
		switch {
		case hold.until.Equal(forEver):
			out.KeyScope = sluice.ForEver
		case !hold.until.IsZero():
			out.KeyScope, out.KeyUntil = sluice.ForWindow, hold.until
		}
	}
	return out, nil
}

// Attempts lists a job's failed attempts.
func (s *Store) Attempts(ctx context.Context, id sluice.ID) ([]sluice.Attempt, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	j := s.jobs[id]
	if j == nil {
		return nil, sluice.ErrNotFound
	}
	return slices.Clone(j.attempts), nil
}

// Jobs lists jobs.
func (s *Store) Jobs(ctx context.Context, filter sluice.JobFilter) (sluice.Page, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return sluice.Page{}, err
	}
	defer leave()
	if filter.Before, err = filter.EndOfPage(); err != nil {
		return sluice.Page{}, err
	}
	of := make(map[sluice.ID]bool)
	if !filter.Batch.IsZero() {
		of[filter.Batch] = true // it may be forgotten
		for _, b := range s.tree(filter.Batch) {
			of[b.ID] = true
		}
	}
	var found []sluice.Job
	for _, j := range s.jobs {
		if chosen(j, filter) && (len(of) == 0 || of[j.Batch]) {
			listed := j.copy()
			listed.Payload, listed.Checkpoint, listed.Result = nil, nil, nil
			found = append(found, listed)
		}
	}
	return filter.Page(found, sluice.ID{}), nil
}

func chosen(j *job, f sluice.JobFilter) bool {
	switch {
	case f.Queue != "" && j.Queue != f.Queue,
		f.Tenant != "" && j.Tenant != f.Tenant,
		f.Key != "" && j.Key != f.Key,
		len(f.States) > 0 && !slices.Contains(f.States, j.State),
		j.Attempts < f.MinAttempts, j.Recoveries < f.MinRecoveries,
		!f.Before.IsZero() && (j.ID == f.Before || f.OldestFirst == (bytes.Compare(j.ID[:], f.Before[:]) < 0)):
		return false
	}
	for name, value := range f.Labels {
		if got, ok := j.Labels[name]; !ok || got != value {
			return false
		}
	}
	return true
}

// Position returns the facts that decide when a job starts.
func (s *Store) Position(ctx context.Context, id sluice.ID) (explain.Position, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return explain.Position{}, err
	}
	defer leave()
	job := s.jobs[id]
	if job == nil {
		return explain.Position{}, sluice.ErrNotFound
	}
	l, settings := s.backlog(job.Queue), s.settings(job.Queue)
	out := explain.Position{Now: s.now().UTC(), InFlight: min(l.inFlight(), explain.CountLimit)}
	bucket := l.bucket.Filled(settings, out.Now)
	out.Tokens, out.TokenWait = bucket.Tokens, l.window.Wait(settings, bucket, out.Now)
	s.tenantPosition(&out, l, job)
	out.OrphanRuns = s.straysOf(id)
	out.OrphanRuns = out.OrphanRuns[:min(len(out.OrphanRuns), explain.HoldingLimit)]
	out.Behind = s.behindOf(id)
	if job.State != sluice.StateQueued {
		return out, nil
	}
	for _, other := range s.jobs {
		if other.live && other.State == sluice.StateQueued && other.BlockedBy.IsZero() && other.Queue == job.Queue &&
			(!out.ByTenant || other.Tenant == job.Tenant) &&
			!other.DueAt.After(out.Now) && before(other, job) && out.Ahead < explain.CountLimit {
			out.Ahead++
		}
	}
	return out, nil
}

// behindOf are some jobs that run after a job, or wait for it now.
func (s *Store) behindOf(of sluice.ID) []sluice.ID {
	all := slices.DeleteFunc(slices.Clone(s.after[of]), func(id sluice.ID) bool { return s.jobs[id] == nil })
	for _, id := range s.behind[of] {
		if j := s.blocked(id); j != nil && j.BlockedBy == of && id != of {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, func(a, b sluice.ID) int { return bytes.Compare(a[:], b[:]) })
	all = slices.Compact(all)
	return all[:min(len(all), explain.HoldingLimit)]
}

// tenantPosition adds the facts about a job's tenant, if its queue serves tenants in turns.
func (s *Store) tenantPosition(out *explain.Position, l *backlog, of *job) {
	if out.ByTenant = s.byTenant(of.Queue); !out.ByTenant {
		return
	}
	out.EffectiveLimits = s.terms(of.Queue, of.Tenant, out.Now)
	out.Held = l.held[of.Tenant]
	if n := l.tenantQueues[of.Tenant]; n != nil {
		out.TenantTokenWait = flow.TokenWait(out.EffectiveLimits, n.Bucket, out.Now)
	}
	var holding []engine.OrphanRun
	for _, inFlight := range []map[sluice.ID]*job{l.claimed, l.dispatched} {
		for id, other := range inFlight {
			if other.Tenant == of.Tenant {
				holding = append(holding, engine.OrphanRun{JobID: id, ClaimedAt: other.ClaimedAt})
			}
		}
	}
	for _, run := range s.strays {
		if run.Queue == of.Queue && run.Tenant == of.Tenant {
			holding = append(holding, run.OrphanRun)
		}
	}
	slices.SortFunc(holding, func(a, b engine.OrphanRun) int {
		return cmp.Or(a.ClaimedAt.Compare(b.ClaimedAt), bytes.Compare(a.JobID[:], b.JobID[:]))
	})
	for _, run := range holding[:min(len(holding), explain.HoldingLimit)] {
		out.Holding = append(out.Holding, run.JobID)
	}
}

// before reports whether job a is claimed before job b.
func before(a, b *job) bool {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.DueAt.Compare(b.DueAt), bytes.Compare(a.ID[:], b.ID[:])) < 0
}

// Depth counts the jobs of a queue, each figure up to limit.
func (s *Store) Depth(ctx context.Context, queue string, limit int) (sluice.Depth, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return sluice.Depth{}, err
	}
	defer leave()
	d := sluice.Depth{Queue: queue}
	for _, j := range s.jobs {
		if j.Queue == queue {
			s.count(&d, j, limit)
		}
	}
	d.OrphanRuns = min(s.backlog(queue).stray, limit)
	return d, nil
}

func (s *Store) count(d *sluice.Depth, j *job, limit int) {
	figure := map[sluice.State]*int{
		sluice.StateClaimed: &d.Claimed, sluice.StateDispatched: &d.Dispatched,
		sluice.StateUncertain: &d.Uncertain, sluice.StateDead: &d.Dead,
	}[j.State]
	if j.State == sluice.StateQueued {
		switch {
		case !j.BlockedBy.IsZero():
			figure = &d.Blocked
		case j.DueAt.After(s.now()):
			figure = &d.Scheduled
		default:
			figure = &d.Ready
			if d.OldestDue.IsZero() || j.DueAt.Before(d.OldestDue) {
				d.OldestDue = j.DueAt
			}
		}
	}
	if figure != nil {
		*figure = min(*figure+1, limit)
	}
}
