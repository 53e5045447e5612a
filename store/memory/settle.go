package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
)

// forEver is the expiry of a key that is never freed.
var forEver = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// Settle records the outcome of claimed jobs.
func (s *Store) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	errs := make([]error, len(settlements))
	for i, settlement := range settlements {
		errs[i] = s.settle(settlement)
	}
	s.tally.Settled(settlements, errs)
	return errs, nil
}

func (s *Store) settle(in sluice.Settlement) error {
	j := s.jobs[in.ID]
	move := sluice.MoveOf(in.Event)
	mine := j != nil && in.Token.Proves(j.token)
	switch {
	case !settles(in.Event):
		return fmt.Errorf("settle by %s: %w", in.Event, sluice.ErrNotAllowed)
	case sluice.CheckResult("result", in.Result) != nil:
		return sluice.CheckResult("result", in.Result)
	case mine && j.live && move.Allows(j.State):
		s.apply(j, in)
		return nil
	case mine && j.State == move.To, in.InTx && (!mine || !j.live):
		return nil // the same settlement was applied before
	case mine && j.live && j.State != sluice.StateQueued:
		return fmt.Errorf("%s from %s: %w", in.Event, j.State, sluice.ErrNotAllowed)
	}
	s.tellLost(in.ID, j, string(in.Event), in.Holder)
	return sluice.ErrLost
}

// settles reports whether a holder may settle a job by this event.
func settles(event sluice.Event) bool {
	switch event {
	case sluice.EventComplete, sluice.EventRetry, sluice.EventRelease, sluice.EventRecover, sluice.EventBury, sluice.EventDispatch, sluice.EventDoubt:
		return true
	}
	return false
}

func (s *Store) apply(j *job, in sluice.Settlement) {
	act := sluice.Act{By: in.Holder, Reason: sluice.StoredText(in.Reason)}
	switch in.Event {
	case sluice.EventComplete:
		j.Result = bytes.Clone(in.Result)
		s.finish(j, in.Event, act)
	case sluice.EventBury:
		if in.Poison {
			s.noteStray(j)
		}
		s.fail(j, in)
		s.finish(j, in.Event, act)
	case sluice.EventRetry:
		s.fail(j, in)
		j.DueAt = s.now().Add(in.Delay)
		s.back(j, in.Event, act)
	case sluice.EventRelease:
		j.Releases++
		if in.Delay > 0 {
			j.DueAt = s.now().Add(in.Delay)
		}
		s.back(j, in.Event, act)
	case sluice.EventRecover:
		j.Recoveries++
		s.back(j, in.Event, act)
	case sluice.EventDispatch:
		j.Ref, j.DispatchedAt = cmp.Or(in.Ref, j.Ref), s.now()
		s.move(j, in.Event, act)
	case sluice.EventDoubt:
		j.Error = sluice.StoredText(in.Error)
		s.move(j, in.Event, act)
	}
}

// fail records a failed attempt. Burying an uncertain job or a poison job is no failed attempt.
func (s *Store) fail(j *job, in sluice.Settlement) {
	j.Error = sluice.StoredText(in.Error)
	poison := in.Poison && in.Event == sluice.EventBury
	if poison {
		j.Recoveries++
	}
	if poison || j.State == sluice.StateUncertain {
		return
	}
	j.Attempts++
	j.attempts = append(j.attempts, sluice.Attempt{
		JobID: j.ID, Generation: j.Generation, Attempt: j.Attempts, ClaimedAt: j.ClaimedAt, FailedAt: s.now(),
		Holder: j.Holder, Error: j.Error, Stack: sluice.StoredText(in.Stack),
	})
}

// move applies the move of an event. Notable events and acts of people are audited; the queue may
// ask to audit all.
func (s *Store) move(j *job, event sluice.Event, act sluice.Act) {
	from := j.State
	j.State = sluice.MoveOf(event).To
	l := s.backlog(j.Queue)
	delete(l.claimed, j.ID)
	delete(l.dispatched, j.ID)
	if j.State == sluice.StateDispatched {
		l.dispatched[j.ID] = j
	} else if from == sluice.StateClaimed || from == sluice.StateDispatched {
		l.land(j.Tenant)
	}
	if event.Notable() || !act.ID.IsZero() || s.settings(j.Queue).Audit == sluice.AuditFull {
		s.tell(j, event, from, act)
	}
}

// back returns a job to its queue. The token stays, so a repeated settlement is recognised.
func (s *Store) back(j *job, event sluice.Event, act sluice.Act) {
	s.move(j, event, act)
	j.Holder, j.Ref, j.Engine = "", "", ""
	j.ClaimedAt, j.DispatchedAt, j.LeaseUntil = time.Time{}, time.Time{}, time.Time{}
	s.wait(j)
	if !j.DueAt.After(s.now()) {
		s.signal(sluice.Signal{Queue: j.Queue})
	}
}

// finish ends a job's life, frees its key and unblocks the jobs that wait for it.
func (s *Store) finish(j *job, event sluice.Event, act sluice.Act) {
	held := j.State == sluice.StateClaimed
	if event == sluice.EventCancel { // no settlement reports a cancellation
		s.tally.Moved(j.Queue, j.Tenant, event, 1)
	}
	s.end(j, event, act)
	if held && event == sluice.EventCancel {
		s.signal(sluice.Signal{Cancelled: j.ID})
	}
}

// end is finish without statistics and without the signal to the holder.
func (s *Store) end(j *job, event sluice.Event, act sluice.Act) {
	s.move(j, event, act)
	j.live, j.FinishedAt, j.LeaseUntil, j.Engine = false, s.now(), time.Time{}, ""
	s.countMember(j, j.State, 1)
	of := class{j.Queue, j.State}
	s.history[of] = withEnding(s.history[of], ending{j.ID, j.FinishedAt})
	if j.keyed {
		s.giveBackKey(j)
	}
	j.BlockedBy, j.parked = sluice.ID{}, false
	s.endHold(j)
	if s.awaited.Take(j.ID) {
		s.signal(sluice.Signal{Ended: j.ID})
	}
	s.leaveOrder(j)
	s.unblock(j.ID)
}

// giveBackKey frees the key of a job that ends. If the job waited behind the running holder, that
// holder gets the key back.
func (s *Store) giveBackKey(j *job) {
	place := queueKey{j.Queue, j.Key}
	if hold := s.keys[place]; hold.job != j.ID || !hold.until.IsZero() {
		return
	}
	if blocker := s.jobs[j.waitsFor()]; blocker != nil && blocker.live && blocker.Queue == j.Queue && blocker.Key == j.Key {
		s.keys[place] = keyHold{job: blocker.ID}
		return
	}
	delete(s.keys, place)
}
