package memory

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/storing"
)

// known refuses a job that is to run after a job that is not stored. If the named job was a
// duplicate in the same batch, known replaces its id with the holder of the key.
func (s *Store) known(in *sluice.Insert, twins map[sluice.ID]sluice.ID) error {
	in.After = slices.Clone(in.After)
	for i, id := range in.After {
		if twin, duplicate := twins[id]; duplicate {
			in.After[i], in.AfterFailures = twin, storing.AfterTwin(in.AfterFailures, id, twin)
		}
		if s.jobs[in.After[i]] == nil {
			return storing.AfterUnknown(id)
		}
	}
	return nil
}

// takePlace gives a new job its place in its order, and records the jobs that it runs after.
func (s *Store) takePlace(j *job) {
	s.placed++
	j.place = s.placed
	if j.OrderKey != "" {
		place := queueKey{j.Queue, j.OrderKey}
		s.chains[place] = append(s.chains[place], j)
	}
	j.rest = slices.DeleteFunc(slices.Clone(j.After), func(id sluice.ID) bool {
		other := s.jobs[id]
		return other != nil && !other.live && (other.State == sluice.StateCompleted || j.ruleFor(id) == sluice.FailureRuns)
	})
	s.waitForOthers(j)
}

// waitForOthers makes a job wait for other jobs, or until it is due.
func (s *Store) waitForOthers(j *job) {
	slices.SortFunc(j.rest, func(a, b sluice.ID) int { return bytes.Compare(a[:], b[:]) })
	for _, id := range j.rest {
		s.after[id] = append(s.after[id], j.ID)
		if s.fails(j, id) {
			s.cancelAfter(j, id)
			return
		}
	}
	if !s.look(j) {
		s.wait(j)
	}
}

// takePlaceAgain gives a requeued job its old place in its order. The job waits for the unfinished
// jobs that it runs after. Ended ones are ignored, completed or not, because a person wants the job
// to run.
func (s *Store) takePlaceAgain(j *job) {
	if j.OrderKey != "" {
		place := queueKey{j.Queue, j.OrderKey}
		at, _ := slices.BinarySearchFunc(s.chains[place], j.place, func(other *job, place int64) int { return cmp.Compare(other.place, place) })
		s.chains[place] = slices.Insert(s.chains[place], at, j)
	}
	j.rest = slices.DeleteFunc(slices.Clone(j.After), func(id sluice.ID) bool { return !s.lives(id) })
	s.waitForOthers(j)
	s.signal(sluice.Signal{Queue: j.Queue})
}

// leaveOrder removes an ended job from its order.
func (s *Store) leaveOrder(j *job) {
	if j.OrderKey == "" {
		return
	}
	place := queueKey{j.Queue, j.OrderKey}
	s.chains[place] = slices.DeleteFunc(s.chains[place], func(other *job) bool { return other == j })
	if len(s.chains[place]) == 0 {
		delete(s.chains, place)
	}
}

// look works out the job that a queued job waits for now, and reports whether anything changed. If
// a job that it runs after has failed and the failure rule asks for it, look cancels the queued
// job.
func (s *Store) look(j *job) (changed bool) {
	if reason := s.failure(j); reason != "" {
		s.finish(j, sluice.EventCancel, sluice.Act{By: "sluice", Reason: reason})
		return true
	}
	before := j.BlockedBy
	j.BlockedBy = s.blocker(j)
	if j.BlockedBy == before && !before.IsZero() {
		return false
	}
	s.wait(j)
	if j.BlockedBy.IsZero() {
		s.signal(sluice.Signal{Queue: j.Queue})
	}
	return true
}

// ruleFor returns a job's failure rule for a job that it runs after.
func (j *job) ruleFor(id sluice.ID) sluice.AfterFailure {
	return storing.AfterRule(j.AfterFailure, j.AfterFailures, id)
}

// fails reports whether a job that j runs after makes j fail.
func (s *Store) fails(j *job, id sluice.ID) bool {
	other, rule := s.jobs[id], j.ruleFor(id)
	switch {
	case other == nil:
		return rule != sluice.FailureRuns
	case other.live, other.State == sluice.StateCompleted:
		return false
	}
	return rule == sluice.FailureCancels
}

// cancelAfter cancels a job because a job that it runs after has failed.
func (s *Store) cancelAfter(j *job, id sluice.ID) {
	s.finish(j, sluice.EventCancel, sluice.Act{By: "sluice", Reason: s.failureOf(id)})
}

// failureOf returns the reason for cancelling the jobs that run after a failed job.
func (s *Store) failureOf(id sluice.ID) string {
	if other := s.jobs[id]; other != nil {
		return storing.AfterFailed(id, other.State)
	}
	return storing.AfterFailed(id, "")
}

// failure drops the jobs that j no longer waits for, from the last of j.rest on, and stops at a job that j still waits
// for. If a job makes j fail, failure returns the reason for cancelling j.
func (s *Store) failure(j *job) (reason string) {
	for len(j.rest) > 0 {
		id := j.rest[len(j.rest)-1]
		other := s.jobs[id]
		switch {
		case s.fails(j, id):
			return s.failureOf(id)
		case other != nil && (other.live || other.State != sluice.StateCompleted && j.ruleFor(id) == sluice.FailureWaits):
			return ""
		}
		j.rest = j.rest[:len(j.rest)-1]
	}
	return ""
}

// blocker returns the job that j must wait for, or zero. The first that applies counts:
//
//   - j itself, while somebody holds j or a run of j may be open
//   - the current blocker, while it lives and has not fallen behind
//   - the job before j in its order
//   - a later job of its order that became claimable before j came back
//   - a job that j runs after
func (s *Store) blocker(j *job) sluice.ID {
	switch {
	case j.hold != nil, j.parked, s.waitsForRun(j.ID):
		return j.ID
	case j.BlockedBy != j.ID && s.lives(j.BlockedBy) && !j.overtakes(s.jobs[j.BlockedBy]):
		return j.BlockedBy
	}
	var before, open sluice.ID
	for _, other := range s.chains[queueKey{j.Queue, j.OrderKey}] {
		switch {
		case j.OrderKey == "" || other == j:
		case other.place < j.place:
			before = other.ID
		case other.letGo():
			open = other.ID
		}
	}
	switch {
	case !before.IsZero():
		return before
	case !open.IsZero():
		return open
	case len(j.rest) > 0:
		return j.rest[len(j.rest)-1]
	}
	return sluice.ID{}
}

// letGo reports whether no earlier job of its order holds a job back. A job that waits for its limit key keeps its place.
func (j *job) letGo() bool { return j.BlockedBy.IsZero() || j.parked }

// overtakes reports whether j need not wait for a later job of its order, because that job waits again: for example,
// somebody holds it.
func (j *job) overtakes(later *job) bool {
	return j.OrderKey != "" && later.OrderKey == j.OrderKey && later.Queue == j.Queue && later.place > j.place && !later.letGo()
}

func (s *Store) lives(id sluice.ID) bool {
	j := s.jobs[id]
	return j != nil && j.live
}

// unblock re-evaluates the jobs that wait for an ended job. Jobs that it cancels end too, so
// unblock works through a list instead of recursing.
func (s *Store) unblock(ended sluice.ID) {
	s.ended = append(s.ended, ended)
	if len(s.ended) > 1 {
		return // the outermost call of unblock evaluates the jobs that wait for this one
	}
	for i := 0; i < len(s.ended); i++ {
		id := s.ended[i]
		waiting := s.behind[id]
		delete(s.behind, id)
		for _, behind := range waiting {
			j := s.blocked(behind)
			if j == nil {
				continue
			}
			if s.look(j); j.live && j.BlockedBy == id { // it waits until somebody requeues the failed job
				s.behind[id] = append(s.behind[id], behind)
			}
		}
		s.failThose(id)
	}
	s.ended = nil
}

// blocked returns a queued job that waits for another job. Nil: the job is not stored, has moved on, or waits for none.
func (s *Store) blocked(id sluice.ID) *job {
	if j := s.jobs[id]; j != nil && j.live && j.State == sluice.StateQueued && !j.BlockedBy.IsZero() {
		return j
	}
	return nil
}

// failThose applies the failure rules of the jobs that run after a failed job: it cancels them, lets them run as if the
// failed job had completed, or leaves them waiting.
func (s *Store) failThose(ended sluice.ID) {
	if other := s.jobs[ended]; other != nil && (other.live || other.State == sluice.StateCompleted) {
		return
	}
	for _, id := range s.after[ended] {
		j := s.blocked(id)
		switch {
		case j == nil || !slices.Contains(j.rest, ended):
		case s.fails(j, ended):
			s.cancelAfter(j, ended)
		case j.ruleFor(ended) == sluice.FailureRuns:
			j.rest = slices.DeleteFunc(j.rest, func(other sluice.ID) bool { return other == ended })
		}
	}
}

// passes makes no job wait any longer for a completed job that is about to be deleted.
func (s *Store) passes(deleted *job) {
	for _, id := range s.after[deleted.ID] {
		if j := s.blocked(id); j != nil && deleted.State == sluice.StateCompleted {
			j.rest = slices.DeleteFunc(j.rest, func(other sluice.ID) bool { return other == deleted.ID })
		}
	}
	delete(s.after, deleted.ID)
}
