package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/engine"
)

func settleRules() []Rule {
	return []Rule{
		{"R-50", "A completed job is finished, keeps its result, and is not handed out again.", "C-25, C-30, C-92", func(w *world) {
			id := w.add(sluice.EnqueueOptions{})
			s := by(sluice.EventComplete, w.claimOne())
			s.Result = []byte(`{"posted":12345678901234567890}`)
			w.done(s)
			j := w.inState(id, sluice.StateCompleted)
			equal(w, "result", string(j.Result), `{"posted":12345678901234567890}`)
			equal(w, "attempts", j.Attempts, 0)
			equal(w, "holder", j.Holder, holder(1))
			w.near("finished_at", j.FinishedAt, w.Now())
			w.near("claimed_at", j.ClaimedAt, w.Now())
			w.claimNone("it is completed")
		}},
		{"R-1110", "An error of a handler is no outage of the store because it has a number of its own.", "", func(w *world) {
			for code := range 600 {
				if err := fmt.Errorf("call the bank: %w", coded(code)); sluice.Outage(w.Store, err) {
					w.Errorf("%v is an outage of the store", err)
				}
			}
		}},
		{"R-51", "A retried job waits for its delay; the failed attempt is counted and kept with its error, holder and stack.", "I-5, C-54, C-90, C-93", func(w *world) {
			id := w.add(sluice.EnqueueOptions{})
			s := by(sluice.EventRetry, w.claimOne())
			s.Delay, s.Stack = 10*time.Minute, "goroutine 1"
			w.done(s)
			j := w.inState(id, sluice.StateQueued)
			equal(w, "attempts", j.Attempts, 1)
			equal(w, "error", j.Error, "no route to bank")
			equal(w, "label", j.Label(w.Now()), "retrying")
			w.near("due_at", j.DueAt, w.Now().Add(10*time.Minute))
			w.claimNone("it waits for its delay")
			attempts, err := w.Store.Attempts(w.ctx, id)
			w.ok(err)
			equal(w, "attempts kept", len(attempts), 1)
			a := attempts[0]
			equal(w, "attempt", a.Attempt, 1)
			equal(w, "error", a.Error, "no route to bank")
			equal(w, "holder", a.Holder, holder(1))
			equal(w, "stack", a.Stack, "goroutine 1")
			w.near("failed_at", a.FailedAt, w.Now())
			w.Advance(11 * time.Minute)
			w.done(by(sluice.EventComplete, w.claimOne()))
			equal(w, "attempts", w.inState(id, sluice.StateCompleted).Attempts, 1)
		}},
		{"R-52", "A released job counts no attempt and keeps its place; with a delay it waits for that long.", "I-5, A-54, A-121", func(w *world) {
			first := w.add(sluice.EnqueueOptions{DueAt: w.Now().Add(-time.Hour)})
			w.addMany(3)
			w.done(by(sluice.EventRelease, w.claimOne()))
			j := w.inState(first, sluice.StateQueued)
			equal(w, "attempts", j.Attempts, 0)
			equal(w, "releases", j.Releases, 1)
			w.near("place", j.DueAt, w.Now().Add(-time.Hour))
			claims := w.findAll(first)
			s := by(sluice.EventRelease, claims[first])
			s.Delay = time.Hour
			w.done(s)
			equal(w, "others", len(claims)-1+len(w.claim(10)), 3)
			w.near("due_at", w.job(first).DueAt, w.Now().Add(time.Hour))
		}},
		{"R-53", "The k-th failed attempt of max_attempts k buries the job, the ones before retry it.", "I-6, A-46, B-47, C-53, C-91", func(w *world) {
			id := w.add(sluice.EnqueueOptions{MaxAttempts: 3})
			settings := sluice.DefaultSettings()
			settings.Backoff = sluice.Backoff{Base: time.Second, Factor: 2, Max: time.Minute}
			for attempt := 1; attempt <= 3; attempt++ {
				w.done(sluice.FailureOf(w.claimOne(), settings, "no route to bank"))
				w.Advance(time.Minute)
			}
			j := w.inState(id, sluice.StateDead)
			equal(w, "attempts", j.Attempts, 3)
			equal(w, "error", j.Error, "no route to bank")
			equal(w, "reason", w.told(id, sluice.EventBury).Reason, "attempts spent")
			attempts, err := w.Store.Attempts(w.ctx, id)
			w.ok(err)
			for i, a := range attempts {
				equal(w, "attempt", a.Attempt, i+1)
			}
			equal(w, "attempts kept", len(attempts), 3)
			w.claimNone("it is dead")
		}},
		{"R-54", "A settlement with an old token changes nothing, gives ErrLost, and is audited.", "I-2", func(w *world) {
			id := w.add(sluice.EnqueueOptions{})
			old := w.claimOne()
			w.done(by(sluice.EventRelease, old))
			now := w.claimOne()
			for _, event := range []sluice.Event{sluice.EventComplete, sluice.EventBury, sluice.EventRetry, sluice.EventRelease, sluice.EventRecover, sluice.EventDispatch, sluice.EventDoubt} {
				w.is(w.settle(by(event, old)), sluice.ErrLost)
				equal(w, "refused", w.told(id, audit.EventLost).Reason, "refused: "+string(event))
			}
			j := w.inState(id, sluice.StateClaimed)
			equal(w, "attempts", j.Attempts, 0)
			w.done(by(sluice.EventComplete, now))
			w.is(w.settle(by(sluice.EventRetry, old)), sluice.ErrLost)
			unknown := sluice.Settlement{ID: sluice.NewID(), Token: sluice.NewToken(), Event: sluice.EventComplete}
			w.is(w.settle(unknown), sluice.ErrLost)
		}},
		{"R-440", "The zero token proves nothing: it neither claims, renews, keeps a checkpoint, intends a run nor settles a job, in whatever state.", "I-2", func(w *world) {
			queued, claimed, dispatched, uncertain := w.add(sluice.EnqueueOptions{}), sluice.ID{}, sluice.ID{}, sluice.ID{}
			w.zeroTokenMoves(queued, sluice.StateQueued)
			request := claimOf(1, 10)
			request.Token = sluice.Token{}
			_, err := w.Store.Claim(w.ctx, request)
			w.is(err, sluice.ErrInvalid)
			w.inState(queued, sluice.StateQueued)
			w.addMany(2)
			for i, c := range w.claim(3) {
				switch i {
				case 0:
					claimed = c.ID
				case 1:
					dispatched = c.ID
					w.done(by(sluice.EventDispatch, c))
				case 2:
					uncertain = c.ID
					w.done(by(sluice.EventDoubt, c))
				}
			}
			w.zeroTokenMoves(claimed, sluice.StateClaimed)
			w.zeroTokenMoves(dispatched, sluice.StateDispatched)
			w.zeroTokenMoves(uncertain, sluice.StateUncertain)
		}},
		{"R-55", "A settlement sent again succeeds and moves nothing a second time.", "I-20", func(w *world) {
			for _, event := range []sluice.Event{sluice.EventComplete, sluice.EventBury, sluice.EventRetry, sluice.EventRelease, sluice.EventRecover, sluice.EventDispatch, sluice.EventDoubt} {
				id := w.add(sluice.EnqueueOptions{})
				s := by(event, w.claimOne())
				s.Delay = time.Hour
				w.done(s)
				before := w.job(id)
				told := len(w.audit(id))
				w.done(s)
				after := w.job(id)
				equal(w, "state", after.State, before.State)
				equal(w, "attempts", after.Attempts, before.Attempts)
				equal(w, "releases", after.Releases, before.Releases)
				equal(w, "audit entries", len(w.audit(id)), told)
			}
		}},
		{"R-56", "In a batch of settlements a bad one fails alone, and an id that comes twice is settled once.", "I-8, A-56, A-102, B-50", func(w *world) {
			w.addMany(4)
			claims := w.claim(4)
			w.done(by(sluice.EventRelease, claims[1]))
			batch := []sluice.Settlement{
				by(sluice.EventComplete, claims[0]), by(sluice.EventComplete, claims[1]), by(sluice.EventRetry, claims[2]),
				by(sluice.EventBury, claims[3]), by(sluice.EventBury, claims[3]), by("explode", claims[0]),
			}
			errs, err := w.Store.Settle(w.ctx, batch)
			w.ok(err)
			for i, want := range []error{nil, sluice.ErrLost, nil, nil, nil, sluice.ErrNotAllowed} {
				w.is(errs[i], want)
			}
			w.inState(claims[0].ID, sluice.StateCompleted)
			w.inState(claims[1].ID, sluice.StateQueued)
			w.inState(claims[2].ID, sluice.StateQueued)
			equal(w, "attempts", w.inState(claims[3].ID, sluice.StateDead).Attempts, 1)
		}},
		{"R-57", "A settlement that stands in for the holder's own transaction counts only if that transaction was not committed.", "I-2", func(w *world) {
			committed, forgotten := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{})
			claims := w.claim(2)
			w.done(by(sluice.EventComplete, claims[0]))
			for _, c := range claims {
				s := by(sluice.EventRetry, c)
				s.InTx = true
				w.done(s)
			}
			w.inState(committed, sluice.StateCompleted)
			equal(w, "nothing is told of it", len(w.audit(committed)), 0)
			equal(w, "attempts", w.inState(forgotten, sluice.StateQueued).Attempts, 1)
		}},
		{"R-58", "Error texts that a store cannot hold are mended and cut, never refused.", "I-9, C-99", func(w *world) {
			for _, text := range []string{"nul \x00 inside", "bad \xff\xfe utf-8", strings.Repeat("long ", 10_000), strings.Repeat("語", 9_000)} {
				id := w.add(sluice.EnqueueOptions{})
				s := by(sluice.EventBury, w.claimOne())
				s.Error, s.Stack = text, text
				w.done(s)
				got := w.inState(id, sluice.StateDead).Error
				equal(w, "valid", utf8.ValidString(got) && !strings.Contains(got, "\x00"), true)
				equal(w, "not empty", got != "", true)
				equal(w, "cut", len(got) <= sluice.MaxErrorBytes, true)
			}
		}},
		{"R-1175", "A settlement whose reason a store cannot hold is stored with the reason mended and cut, and so are those beside it.", "", mendedReasons},
		{"R-59", "Of two different settlements of one claim at the same moment, exactly one moves the job.", "I-2", func(w *world) {
			for range 10 {
				w.add(sluice.EnqueueOptions{})
				c := w.claimOne()
				var wait sync.WaitGroup
				var moved atomic.Int32
				for n, event := range []sluice.Event{sluice.EventComplete, sluice.EventBury} {
					store := w.Store
					if n == 1 {
						store = w.Other
					}
					wait.Go(func() {
						errs, err := store.Settle(w.ctx, []sluice.Settlement{by(event, c)})
						if err != nil {
							w.Errorf("settle: %v", err)
						} else if errs[0] == nil {
							moved.Add(1)
						}
					})
				}
				wait.Wait()
				equal(w, "moves", int(moved.Load()), 1)
			}
		}},
		{"R-60", "Holders that claim and settle at once from any store lose nothing and double nothing.", "I-1, I-2, B-49, B-50", func(w *world) {
			for _, holders := range []int{2, 8} {
				ids := w.addMany(30 * holders)
				w.workTogether(holders)
				for _, id := range ids {
					w.inState(id, sluice.StateCompleted)
				}
			}
		}},
	}
}

// workTogether lets holders claim and complete from both stores at once until nothing is left.
func (w *world) workTogether(holders int) {
	var wait sync.WaitGroup
	for n := range holders {
		store := w.Store
		if n%2 == 1 {
			store = w.Other
		}
		wait.Go(func() {
			for idle := 0; idle < 3; {
				claimed, err := store.Claim(w.ctx, claimOf(n, 9))
				if err != nil {
					w.Errorf("claim: %v", err)
					return
				}
				var batch []sluice.Settlement
				for _, c := range claimed.Jobs {
					batch = append(batch, by(sluice.EventComplete, c))
				}
				if len(batch) == 0 {
					idle++
					time.Sleep(min(max(claimed.NextDue, 0), 50*time.Millisecond))
					continue
				}
				errs, err := store.Settle(w.ctx, batch)
				if err != nil {
					w.Errorf("settle: %v", err)
				}
				for _, err := range errs {
					if err != nil {
						w.Errorf("settle: %v", err)
					}
				}
			}
		})
	}
	wait.Wait()
}

// coded is an error with a number, such as an HTTP status.
type coded int

func (c coded) Error() string { return fmt.Sprintf("answer %d", int(c)) }
func (c coded) Code() int     { return int(c) }

// zeroTokenMoves shows a job the zero token by every verb of a holder, and makes sure that each is refused and the job stays
// as it is.
func (w *world) zeroTokenMoves(id sluice.ID, want sluice.State) {
	w.Helper()
	refused := func(verb string, err error) {
		w.Helper()
		if err == nil {
			w.Errorf("%s with the zero token is not refused", verb)
		}
	}
	for _, event := range []sluice.Event{sluice.EventComplete, sluice.EventBury, sluice.EventRetry, sluice.EventRelease, sluice.EventRecover, sluice.EventDispatch, sluice.EventDoubt} {
		refused(string(event), w.settle(sluice.Settlement{ID: id, Event: event, Holder: holder(1)}))
	}
	if lost, err := w.Store.Renew(w.ctx, []sluice.Renewal{{ID: id, Lease: time.Hour}}); len(lost) == 0 {
		refused("renew", err)
	}
	refused("checkpoint", w.Store.SaveCheckpoint(w.ctx, id, sluice.Token{}, []byte(`1`)))
	errs, err := engine.Given(w.Store).RecordIntent(w.ctx, []engine.Intent{{ID: id, Ref: "run", Engine: "engine", Lease: time.Hour}})
	refused("intend", w.only(errs, err))
	equal(w, "checkpoint", string(w.inState(id, want).Checkpoint), "")
}

// mendedReasons settles jobs by each event, with reasons such as an engine of the caller's may give.
func mendedReasons(w *world) {
	w.save(func(s *sluice.Settings) { s.Audit = sluice.AuditFull })
	events := []sluice.Event{
		sluice.EventComplete, sluice.EventRetry, sluice.EventRelease, sluice.EventRecover, sluice.EventBury, sluice.EventDispatch, sluice.EventDoubt,
	}
	for _, reason := range []string{"nul \x00 inside", "bad \xff\xfe utf-8", strings.Repeat("long ", 10_000)} {
		for range events {
			w.add(sluice.EnqueueOptions{})
		}
		var settlements []sluice.Settlement
		for n, c := range w.claim(len(events)) {
			s := by(events[n], c)
			s.Reason = reason
			settlements = append(settlements, s)
		}
		errs, err := w.Store.Settle(w.ctx, settlements)
		w.ok(errors.Join(append(errs, err)...))
		for _, s := range settlements {
			got := w.told(s.ID, s.Event).Reason
			equal(w, "valid", utf8.ValidString(got) && !strings.Contains(got, "\x00"), true)
			equal(w, "cut", len(got) <= sluice.MaxErrorBytes, true)
		}
	}
}
