package storetest

import (
	"errors"
	"time"

	"github.com/sluice-queue/sluice"
)

func moveRules() []Rule {
	return []Rule{
		{"R-61", "Every move of the state machine is made, and every other one is refused and changes nothing: each state against each event.", "I-4, I-27, C-30, D-34", func(w *world) {
			for _, state := range sluice.States() {
				for _, move := range sluice.Moves() {
					if move.Event != sluice.EventEnqueue {
						w.tryMove(state, move)
					}
				}
			}
		}},
		{"R-62", "A dispatched job keeps its ref, is neither handed out nor recovered, and is settled by the token of its claim.", "A-32, D-25, H-6", func(w *world) {
			id := w.add(sluice.EnqueueOptions{})
			c := w.claimOne()
			s := by(sluice.EventDispatch, c)
			s.Ref = "payments-" + id.String()
			w.done(s)
			w.Advance(time.Hour)
			equal(w, "recovered", w.recover(), sluice.Recovered{})
			w.claimNone("it is dispatched")
			j := w.inState(id, sluice.StateDispatched)
			equal(w, "ref", j.Ref, s.Ref)
			equal(w, "holder", j.Holder, holder(1))
			w.done(by(sluice.EventComplete, c))
			equal(w, "ref kept", w.inState(id, sluice.StateCompleted).Ref, s.Ref)
		}},
		{"R-63", "An uncertain job is never repeated by itself.", "I-16", func(w *world) {
			id := w.add(sluice.EnqueueOptions{})
			w.done(by(sluice.EventDoubt, w.claimOne()))
			w.told(id, sluice.EventDoubt)
			w.Advance(365 * 24 * time.Hour)
			equal(w, "recovered", w.recover(), sluice.Recovered{})
			w.claimNone("it is uncertain")
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("the bank says no"))))
			c := w.claimOne()
			equal(w, "generation", c.Generation, 2)
		}},
		{"R-64", "The audit of a queue tells of notable moves only, unless its audit setting is full: then of every move, in order, so that replaying it gives each job's state.", "I-4, I-23, D-13", func(w *world) {
			w.save(func(*sluice.Settings) {})
			quiet := w.add(sluice.EnqueueOptions{})
			w.done(by(sluice.EventRetry, w.claimOne()))
			w.done(by(sluice.EventComplete, w.claimOne()))
			equal(w, "entries of an ordinary life", len(w.audit(quiet)), 0)

			w.save(func(s *sluice.Settings) { s.Audit = sluice.AuditFull })
			loud := w.loudLife()
			state := sluice.State("")
			var events []sluice.Event
			for _, e := range w.audit(loud) {
				equal(w, "from", e.From, state)
				equal(w, "to", e.To, sluice.MoveOf(e.Event).To)
				state = e.To
				events = append(events, e.Event)
			}
			equal(w, "replayed state", state, w.job(loud).State)
			equal(w, "moves told", len(events), 11)
		}},
	}
}

// loudLife takes a job of a queue with full audit through eleven moves.
func (w *world) loudLife() sluice.ID {
	in := insertOf(sluice.EnqueueOptions{})
	in.AuditFull = true
	w.receipts(in)
	w.done(by(sluice.EventRelease, w.claimOne()))
	w.done(by(sluice.EventRetry, w.claimOne()))
	w.done(by(sluice.EventBury, w.claimOne()))
	w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{in.ID}, person("again"))))
	w.done(by(sluice.EventDispatch, w.claimOne()))
	w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{in.ID}, person("enough"))))
	return in.ID
}

// tryMove brings a fresh job into a state and tries one event on it.
func (w *world) tryMove(state sluice.State, move sluice.Move) {
	w.Helper()
	id := w.add(sluice.EnqueueOptions{})
	token := w.bring(id, state)
	if move.Event == sluice.EventUndo && state == sluice.StateQueued {
		w.done(by(sluice.EventBury, w.claimOne()))
		w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("test"))))
	}
	err := w.cause(id, token, move.Event)
	now := w.job(id)
	if move.Allows(state) {
		if err != nil || now.State != move.To {
			w.Fatalf("%s from %s: state %s, error %v; want %s", move.Event, state, now.State, err, move.To)
		}
	} else {
		if now.State != state {
			w.Fatalf("%s from %s led to %s, and must be refused", move.Event, state, now.State)
		}
		repeated := move.To == state && !errors.Is(err, errNothingToDo) // a settlement sent again
		if err == nil && !repeated {
			w.Fatalf("%s from %s gave no error", move.Event, state)
		}
	}
	w.clear(id)
}

// bring takes a queued job to a state and gives the token of its last claim.
func (w *world) bring(id sluice.ID, state sluice.State) sluice.Token {
	w.Helper()
	if state == sluice.StateQueued {
		return sluice.Token{}
	}
	c := w.claimOne()
	equal(w, "claimed", c.ID, id)
	switch state {
	case sluice.StateDispatched:
		w.done(by(sluice.EventDispatch, c))
	case sluice.StateUncertain:
		w.done(by(sluice.EventDoubt, c))
	case sluice.StateCompleted:
		w.done(by(sluice.EventComplete, c))
	case sluice.StateDead:
		w.done(by(sluice.EventBury, c))
	case sluice.StateCancelled:
		w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{id}, person("test"))))
	}
	return c.Token
}

var errNothingToDo = errors.New("nothing to do")

// cause makes an event happen to a job by the verb that it belongs to.
func (w *world) cause(id sluice.ID, token sluice.Token, event sluice.Event) error {
	w.Helper()
	switch event {
	case sluice.EventClaim:
		if len(w.claim(1)) == 0 {
			return errNothingToDo
		}
		return nil
	case sluice.EventRecover:
		w.Advance(2 * time.Minute)
		if w.recover().Requeued == 0 {
			return errNothingToDo
		}
		return nil
	case sluice.EventCancel:
		return w.only(w.Store.Cancel(w.ctx, []sluice.ID{id}, person("test")))
	case sluice.EventRequeue:
		return w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("test")))
	case sluice.EventUndo:
		return w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, undo()))
	}
	return w.settle(by(event, &sluice.Claim{Job: sluice.Job{ID: id}, Token: token}))
}

// each gives what became of each job.
func (w *world) each(errs []error, err error) []error {
	w.Helper()
	w.ok(err)
	return errs
}

// undo is the act of a person who takes a requeue back.
func undo() sluice.Act {
	act := person("by mistake")
	act.Undo = true
	return act
}

// clear ends a job so that it is not in the way of the next one.
func (w *world) clear(id sluice.ID) {
	w.Helper()
	switch j := w.job(id); {
	case j.State == sluice.StateUncertain:
		w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("test"))))
		w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{id}, person("test"))))
	case !j.State.Finished():
		w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{id}, person("test"))))
	}
}
