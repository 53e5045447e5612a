package memory

import (
	"bytes"
	"context"
	"maps"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/internal/storing"
)

// Enqueue stores jobs.
func (s *Store) Enqueue(ctx context.Context, inserts []sluice.Insert) ([]sluice.Receipt, error) {
	stay, err := s.room.Enter(ctx, inserts, s.roomSource())
	if err != nil {
		return make([]sluice.Receipt, len(inserts)), err
	}
	receipts, err := s.enqueueAll(ctx, inserts)
	stay.End(inserts, receipts)
	return receipts, err
}

func (s *Store) enqueueAll(ctx context.Context, inserts []sluice.Insert) ([]sluice.Receipt, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if s.gone(inserts) {
		return nil, sluice.ErrQueueGone
	}
	if id := storing.FlowOf(inserts); s.jobs[id] != nil {
		return storing.Known(inserts, false), nil
	}
	receipts := make([]sluice.Receipt, len(inserts))
	queues := make(map[string]bool)
	twins, failed := make(map[sluice.ID]sluice.ID), make(map[int]error)
	for i, insert := range inserts {
		if _, sent := s.jobs[insert.ID]; !sent {
			err := s.enterBatch(&insert)
			if err == nil {
				err = s.known(&insert, twins)
			}
			if err == nil {
				err = s.refuseKey(insert)
			}
			if err != nil {
				failed[i] = err
				continue
			}
		}
		receipts[i] = s.enqueue(insert)
		if receipts[i].ID != insert.ID {
			twins[insert.ID] = receipts[i].ID
		}
		queues[insert.Queue] = true
	}
	s.tally.Enqueued(inserts, receipts)
	for queue := range queues {
		s.signal(sluice.Signal{Queue: queue})
	}
	if len(failed) > 0 {
		return receipts, &sluice.BatchError{Failed: failed, Total: len(inserts)}
	}
	return receipts, nil
}

func (s *Store) enqueue(in sluice.Insert) sluice.Receipt {
	if _, known := s.jobs[in.ID]; known {
		return sluice.Receipt{ID: in.ID, Duplicate: true}
	}
	j := s.newJob(in)
	receipt := sluice.Receipt{ID: j.ID}
	if j.Key != "" {
		holder, stored := s.takeKey(j, in, &receipt)
		if !stored {
			return sluice.Receipt{ID: holder, Duplicate: true}
		}
	}
	s.jobs[j.ID] = j
	s.countMember(j, sluice.StateQueued, 1)
	if in.AuditFull {
		s.tell(j, sluice.EventEnqueue, "", sluice.Act{By: "producer"})
	}
	if in.Hold != "" {
		s.hold(j, sluice.Act{By: hold.ByEnqueue, Reason: in.Hold})
	}
	s.takePlace(j)
	return receipt
}

func (s *Store) newJob(in sluice.Insert) *job {
	now := s.now()
	due := in.DueAt
	if due.IsZero() {
		due = now.Add(in.Delay)
	}
	return &job{
		Job: sluice.Job{
			ID: in.ID, Queue: in.Queue, Tenant: in.Tenant, Priority: in.Priority, Key: in.Key,
			Payload: bytes.Clone(in.Payload), Labels: maps.Clone(in.Labels), MaxAttempts: in.MaxAttempts, Timeout: in.Timeout,
			CreatedAt: now, ExpiresAt: in.ExpiresAt, State: sluice.StateQueued, Generation: 1, DueAt: due,
			OrderKey: in.OrderKey, After: in.After, AfterFailure: in.AfterFailure, AfterFailures: in.AfterFailures, Batch: in.Batch, LimitKey: in.LimitKey, Cost: in.Cost,
		},
		live:  true,
		keyed: in.Key != "" && in.KeyScope == sluice.WhileUnfinished,
	}
}

// refuseKey refuses a job that would change a job of another tenant, which holds its key.
func (s *Store) refuseKey(in sluice.Insert) error {
	hold, held := s.keys[queueKey{in.Queue, in.Key}]
	holder := s.jobs[hold.job]
	if !held || holder == nil || !s.holds(hold) || !storing.RefusesKey(&in, holder.Tenant) {
		return nil
	}
	return storing.KeyRefusal(&in)
}

// takeKey gives the job its key, or returns the job that holds the key.
func (s *Store) takeKey(j *job, in sluice.Insert, receipt *sluice.Receipt) (holder sluice.ID, taken bool) {
	place := queueKey{j.Queue, j.Key}
	hold, held := s.keys[place]
	twin := s.jobs[hold.job]
	lives := twin != nil && twin.live // a key can outlive its job
	waits := lives && twin.State == sluice.StateQueued
	begins := s.now() // the window of the job
	switch {
	case !held || !s.holds(hold):
	case in.OnDuplicate == sluice.Replace && waits:
		if behind := s.jobs[twin.waitsFor()]; behind != nil && behind.live && behind.Queue == j.Queue && behind.Key == j.Key {
			j.BlockedBy = behind.ID // the running job that holds the key, for which the replaced job waited
		}
		receipt.Replaced = twin.ID
		s.finish(twin, sluice.EventCancel, sluice.Act{By: "producer", Reason: "replaced by " + j.ID.String()})
	case merges(in, hold) && waits && twin.Attempts+twin.Releases+twin.Recoveries == 0:
		twin.Payload, twin.Labels = j.Payload, j.Labels // the later run uses the newest payload
		if in.OnDuplicate == sluice.Debounce {
			s.putOff(twin, j, in.KeyWindow)
		} else {
			s.expireWith(twin, j)
		}
		return hold.job, false
	case merges(in, hold) && hold.until.IsZero():
		j.BlockedBy = twin.ID
	case merges(in, hold):
		begins = hold.until
		j.DueAt = begins
	default:
		return hold.job, false
	}
	next := keyHold{job: j.ID}
	switch in.KeyScope {
	case sluice.ForWindow:
		next.until = begins.Add(in.KeyWindow)
	case sluice.ForEver:
		next.until = forEver
	}
	s.keys[place] = next
	return j.ID, true
}

// merges reports whether a job merges into the holder of its key, or runs after that.
func merges(in sluice.Insert, hold keyHold) bool {
	switch in.OnDuplicate {
	case sluice.Coalesce:
		return hold.until.IsZero() || in.KeyScope == sluice.ForWindow && !hold.until.Equal(forEver)
	case sluice.Debounce:
		return hold.until.IsZero()
	}
	return false
}

// putOff makes a waiting job due when the newest is, at most longest after its enqueue. 0: no limit. The job expires when
// the newest would: it would otherwise expire before it is due.
func (s *Store) putOff(j, newest *job, longest time.Duration) {
	due := newest.DueAt
	if last := j.CreatedAt.Add(longest); longest > 0 && due.After(last) {
		due = last
	}
	if j.DueAt = due; j.Generation == 1 { // a requeued job does not expire
		j.ExpiresAt = newest.ExpiresAt
	}
	s.wait(j)
}

// expireWith makes a waiting job expire when the newest would, if the job is due before that; otherwise its expiry stays.
func (s *Store) expireWith(j, newest *job) {
	if j.Generation > 1 || !newest.ExpiresAt.IsZero() && !newest.ExpiresAt.After(j.DueAt) { // a requeued job does not expire
		return
	}
	if j.ExpiresAt = newest.ExpiresAt; !j.ExpiresAt.IsZero() {
		s.expiry.add(j.ExpiresAt, j.ID)
	}
}

func (s *Store) holds(hold keyHold) bool {
	if hold.until.IsZero() {
		holder := s.jobs[hold.job]
		return holder != nil && holder.live
	}
	return hold.until.After(s.now())
}

// wait puts a queued job where Claim and Expire find it.
func (s *Store) wait(j *job) {
	if !j.ExpiresAt.IsZero() {
		s.expiry.add(j.ExpiresAt, j.ID)
	}
	if j.parked { // its place, key or cost may have changed: the next claim judges it anew
		j.parked, j.BlockedBy = false, sluice.ID{}
	}
	if !j.BlockedBy.IsZero() {
		s.behind[j.BlockedBy] = append(s.behind[j.BlockedBy], j.ID)
	} else {
		s.addToTenantQueue(j)
	}
}
