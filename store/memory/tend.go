package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/storing"
)

// Recover requeues jobs whose lease has ended, or buries them as poison.
func (s *Store) Recover(ctx context.Context, queue string, limit int, by string) (sluice.Recovered, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return sluice.Recovered{}, err
	}
	defer leave()
	var out sluice.Recovered
	most := s.settings(queue).MaxRecoveries
	for _, j := range s.late(queue, limit) {
		j.Recoveries++
		if j.Recoveries < most {
			s.back(j, sluice.EventRecover, sluice.Act{By: by, Reason: "the lease of " + j.Holder + " ran out"})
			out.Requeued++
			continue
		}
		j.Error = storing.PoisonError(j.Recoveries)
		s.finish(j, sluice.EventBury, sluice.Act{By: by, Reason: "recoveries spent"})
		out.Buried++
	}
	s.tally.Recovered(queue, out)
	return out, nil
}

// late lists claims whose lease has ended, longest first.
func (s *Store) late(queue string, limit int) []*job {
	var late []*job
	for _, j := range s.backlog(queue).claimed {
		if j.Engine == "" && j.LeaseUntil.Before(s.now()) {
			late = append(late, j)
		}
	}
	slices.SortFunc(late, func(a, b *job) int {
		if order := a.LeaseUntil.Compare(b.LeaseUntil); order != 0 {
			return order
		}
		return bytes.Compare(a.ID[:], b.ID[:])
	})
	return late[:min(limit, len(late))]
}

// Dispatches lists the jobs with an intended or open run at an engine.
func (s *Store) Dispatches(ctx context.Context, filter engine.DispatchFilter) ([]*sluice.Claim, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	l := s.backlog(filter.Queue)
	var found []*sluice.Claim
	for _, in := range []map[sluice.ID]*job{l.claimed, l.dispatched} {
		for _, j := range in {
			overdue := j.State == sluice.StateClaimed && j.LeaseUntil.Before(s.now())
			chosen := len(filter.IDs) == 0 || slices.Contains(filter.IDs, j.ID)
			if j.Engine == "" || !chosen || filter.Overdue && !overdue || bytes.Compare(j.ID[:], filter.After[:]) <= 0 {
				continue
			}
			c := &sluice.Claim{Job: j.copy(), Token: j.token}
			c.Payload, c.Checkpoint = nil, nil
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *sluice.Claim) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return found[:min(len(found), cmp.Or(filter.Limit, engine.DispatchLimit))], nil
}

// Expire cancels queued jobs whose expires_at has passed.
func (s *Store) Expire(ctx context.Context, limit int, by string) (int, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	done := 0
	for done < limit {
		w, ok := s.expiry.first()
		if !ok || w.at.After(s.now()) {
			break
		}
		s.expiry.drop()
		if j := s.jobs[w.id]; j != nil && j.live && j.State == sluice.StateQueued && j.ExpiresAt.Equal(w.at) {
			s.finish(j, sluice.EventCancel, sluice.Act{By: by, Reason: "expired"})
			done++
		}
	}
	return done, nil
}

// Repair repairs states that no other method handles: jobs of queues without settings, and jobs whose
// blocker is gone. It also ends limits of tenants whose time is over.
func (s *Store) Repair(ctx context.Context, by string) (int, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	repaired := 0
	for _, j := range s.jobs {
		if !j.live {
			continue
		}
		if _, known := s.queues[j.Queue]; !known {
			if err := s.makeQueue(j.Queue, sluice.Act{By: by, Reason: "jobs wait in it, and it had no settings"}); err != nil {
				return repaired, fmt.Errorf("repair queue %q: %w", j.Queue, err)
			}
			repaired++
		}
		if !j.BlockedBy.IsZero() && !s.lives(j.BlockedBy) && s.look(j) {
			repaired++
		}
		if s.lookForRun(j.ID) {
			repaired++
		}
	}
	s.repairParked()
	if err := s.endTenantLimits(by); err != nil {
		return repaired, err
	}
	s.forgetInstructions()
	return repaired, nil
}
