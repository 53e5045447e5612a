package memory

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// ending records when a job ended. The job may since have been requeued, and may have ended again.
type ending struct {
	id sluice.ID
	at time.Time
}

// withEnding adds an ending, the earliest first. It is not the last if the clock was set back since others.
func withEnding(all []ending, e ending) []ending {
	place := len(all)
	for place > 0 && all[place-1].at.After(e.at) {
		place--
	}
	return slices.Insert(all, place, e)
}

// class is a queue and an outcome. All jobs of a class have the same retention.
type class struct {
	queue   string
	outcome sluice.State
}

// Prune deletes finished jobs after their retention, and keys whose window has passed. The last
// calls of a pass remove results, and delete idle tenant queues.
func (s *Store) Prune(ctx context.Context, _ string, limit int) (sluice.Pruned, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return sluice.Pruned{}, err
	}
	defer leave()
	var out sluice.Pruned
	for of := range s.history {
		if out.Deleted += s.pruneClass(of, limit-out.Deleted); out.Deleted == limit {
			out.Next = "more" // deleted entries leave the history, so a pass needs no position
			return out, nil
		}
	}
	for place, hold := range s.keys {
		if !hold.until.IsZero() && hold.until.Before(s.now()) {
			delete(s.keys, place)
		}
	}
	if s.forgetResults(limit) == limit {
		out.Next = "more"
		return out, nil
	}
	s.pruneTenantQueues()
	return out, nil
}

// pruneClass deletes jobs of a class that are too old, up to limit.
func (s *Store) pruneClass(of class, limit int) (deleted int) {
	keep, ended := s.settings(of.queue).Keep(of.outcome), s.history[of]
	for len(ended) > 0 && deleted < limit {
		if j := s.jobs[ended[0].id]; s.last(ended[0]) {
			if keep == 0 || !j.FinishedAt.Add(keep).Before(s.now()) {
				break
			}
			s.passes(j)
			delete(s.jobs, j.ID)
			deleted++
		}
		ended = ended[1:]
	}
	if s.history[of] = ended; len(ended) == 0 {
		delete(s.history, of)
	}
	return deleted
}

// last reports whether the job of an ending is still as it ended then.
func (s *Store) last(e ending) bool {
	j := s.jobs[e.id]
	return j != nil && !j.live && j.FinishedAt.Equal(e.at)
}

// forgetResults removes results whose retention is over, up to limit. The job keeps an empty one.
func (s *Store) forgetResults(limit int) (removed int) {
	for of, ended := range s.history {
		keep := s.settings(of.queue).KeepResults
		if keep == 0 {
			continue
		}
		for _, e := range ended {
			if removed == limit || !e.at.Add(keep).Before(s.now()) {
				break
			}
			if j := s.jobs[e.id]; s.last(e) && len(j.Result) > 0 {
				j.Result = json.RawMessage{}
				removed++
			}
		}
	}
	return removed
}
