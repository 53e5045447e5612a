package storetest

import (
	"bytes"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/engine"
)

// refOf names a run as the rules do.
func refOf(c *sluice.Claim) string { return "payments-" + c.ID.String() }

func intentOf(c *sluice.Claim) engine.Intent {
	return engine.Intent{ID: c.ID, Token: c.Token, Ref: refOf(c), Engine: engineName, Lease: time.Minute}
}

// intend notes the run of one claim and gives the item's error.
func (w *world) intend(c *sluice.Claim) error {
	w.Helper()
	return w.only(engine.Given(w.Store).RecordIntent(w.ctx, []engine.Intent{intentOf(c)}))
}

// intendAll notes the runs of claims and counts those that were noted; the others must be lost.
func (w *world) intendAll(store sluice.Store, claims []*sluice.Claim) (noted int) {
	var intents []engine.Intent
	for _, c := range claims {
		intents = append(intents, intentOf(c))
	}
	errs, err := engine.Given(store).RecordIntent(w.ctx, intents)
	if err != nil {
		w.Errorf("intend: %v", err)
		return 0
	}
	for _, err := range errs {
		if err == nil {
			noted++
		}
	}
	return noted
}

// intended is a new job of which a run is intended.
func (w *world) intended() *sluice.Claim {
	w.Helper()
	w.add(sluice.EnqueueOptions{})
	c := w.claimOne()
	w.ok(w.intend(c))
	return c
}

// dispatched is a new job of which a run is under way.
func (w *world) dispatched(ref string) *sluice.Claim {
	w.Helper()
	c := w.intended()
	s := by(sluice.EventDispatch, c)
	s.Ref = ref
	w.done(s)
	return c
}

// dispatches lists ids, of the usual queue if the filter names none.
func (w *world) dispatches(filter engine.DispatchFilter) []sluice.ID {
	w.Helper()
	if filter.Queue == "" {
		filter.Queue = queue
	}
	found, err := engine.Given(w.Store).Dispatches(w.ctx, filter)
	w.ok(err)
	var ids []sluice.ID
	for _, c := range found {
		ids = append(ids, c.ID)
	}
	return ids
}

// dispatchOf gives the one listed dispatch of a job.
func (w *world) dispatchOf(id sluice.ID) *sluice.Claim {
	w.Helper()
	found, err := engine.Given(w.Other).Dispatches(w.ctx, engine.DispatchFilter{Queue: queue, IDs: []sluice.ID{id}})
	w.ok(err)
	equal(w, "dispatches", len(found), 1)
	return found[0]
}

// dispatchedAt makes sure that a job says when its run was dispatched, or does not.
func (w *world) dispatchedAt(id sluice.ID, said bool) {
	w.Helper()
	at := w.job(id).DispatchedAt
	if said {
		w.near("dispatched_at", at, w.Now())
		return
	}
	equal(w, "dispatched_at", at.IsZero(), true)
}

// like makes sure that a job is listed as it is when it is looked up, with a token that settles it.
func (w *world) like(c *sluice.Claim) {
	w.Helper()
	want := w.job(c.ID)
	equal(w, "payload", len(c.Payload), 0)
	equal(w, "state", c.State, want.State)
	equal(w, "queue", c.Queue, want.Queue)
	equal(w, "ref", c.Ref, want.Ref)
	equal(w, "engine", c.Engine, want.Engine)
	equal(w, "max_attempts", c.MaxAttempts, want.MaxAttempts)
	equal(w, "generation", c.Generation, want.Generation)
	equal(w, "holder", c.Holder, want.Holder)
	equal(w, "lease", c.LeaseUntil.Equal(want.LeaseUntil), true)
	equal(w, "claimed", c.ClaimedAt.Equal(want.ClaimedAt), true)
	equal(w, "dispatched", c.DispatchedAt.Equal(want.DispatchedAt), true)
	lost, err := w.Store.Renew(w.ctx, []sluice.Renewal{{ID: c.ID, Token: c.Token, Lease: time.Minute}})
	w.ok(err)
	equal(w, "held by its token", len(lost) == 0, c.State == sluice.StateClaimed)
}

// blank makes sure that nothing is left of a run.
func (w *world) blank(j sluice.Job) {
	w.Helper()
	equal(w, "ref", j.Ref, "")
	equal(w, "engine", j.Engine, "")
}

// toldLost gives the last entry of a refused write in a job's audit.
func (w *world) toldLost(id sluice.ID) sluice.AuditEntry {
	w.Helper()
	var last sluice.AuditEntry
	for _, e := range w.audit(id) {
		if e.Event == audit.EventLost {
			last = e
		}
	}
	return last
}

// empty cancels all that is unfinished.
func (w *world) empty() {
	w.Helper()
	page, err := w.Store.Jobs(w.ctx, sluice.JobFilter{Queue: queue, States: []sluice.State{sluice.StateQueued, sluice.StateClaimed, sluice.StateDispatched}, Limit: 1000})
	w.ok(err)
	for _, j := range page.Jobs {
		w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{j.ID}, person("test"))))
	}
}

// idOf gives ids that are in another order than they come.
func idOf(n int) sluice.ID {
	id := sluice.NewID()
	id[0] = byte(n * 7 % 10)
	return id
}

func smaller(a, b sluice.ID) sluice.ID {
	if bytes.Compare(a[:], b[:]) < 0 {
		return a
	}
	return b
}

func larger(a, b sluice.ID) sluice.ID {
	if smaller(a, b) == a {
		return b
	}
	return a
}
