package storetest

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/storing"
)

// engineName is where the rules let runs happen.
const engineName = "temporal/billing"

func dispatchRules() []Rule { return slices.Concat(intentRules(), listedRules(), runRules()) }

func intentRules() []Rule {
	return []Rule{
		{"R-300", "A claim of which a run is intended is never handed out blindly, however long ago its lease ran out; one without an intent is.", "I-16, A-49, D-51, H-4", func(w *world) {
			w.addMany(2)
			claims := w.claim(2)
			w.ok(w.intend(claims[0]))
			w.Advance(24 * time.Hour)
			equal(w, "recovered", w.recover(), sluice.Recovered{Requeued: 1})
			j := w.inState(claims[0].ID, sluice.StateClaimed)
			equal(w, "ref", j.Ref, refOf(claims[0]))
			equal(w, "engine", j.Engine, engineName)
			equal(w, "recoveries", j.Recoveries, 0)
			j = w.inState(claims[1].ID, sluice.StateQueued)
			equal(w, "engine of the other", j.Engine, "")
			w.done(by(sluice.EventDispatch, claims[0])) // its token is still good
		}},
		{"R-592", "Queues with jobs at an engine are listed as such though they name none, until the last of these has ended.", "", func(w *world) {
			listed := func() int {
				queues, err := w.Other.Queues(w.ctx, sluice.QueueFilter{Engined: true})
				w.ok(err)
				return len(queues)
			}
			w.save(func(*sluice.Settings) {})
			equal(w, "before", listed(), 0)
			intended, under := w.intended(), w.dispatched("r-1")
			equal(w, "with two", listed(), 1)
			w.done(by(sluice.EventComplete, intended))
			equal(w, "with one", listed(), 1)
			w.done(by(sluice.EventComplete, under))
			equal(w, "after", listed(), 0)
		}},
		{"R-441", "A queue whose jobs an engine runs gives a worker nothing, nor a dispatcher of another engine; one without an engine gives a dispatcher nothing. With limits and without, and as soon as the setting changes.", "I-16", func(w *world) {
			ids := w.addMany(3)
			claim := func(engine string, jobs int) {
				w.Helper()
				request := claimOf(1, 1)
				request.Engine = engine
				got, err := w.Store.Claim(w.ctx, request)
				equal(w, "claimed for "+engine, len(got.Jobs), jobs)
				if jobs == 0 {
					w.is(err, sluice.ErrNotAllowed)
				} else {
					w.ok(err)
				}
				if other, is := errors.AsType[*sluice.OtherRunnerError](err); is {
					equal(w, "queue", other.Queue, queue)
					equal(w, "claimed for", other.Claimed, engine)
				}
			}
			claim("temporal", 0)
			w.save(func(s *sluice.Settings) { s.Engine, s.RunType = "temporal", "Pay" })
			claim("", 0)
			claim("local", 0)
			claim("temporal", 1)
			w.save(func(s *sluice.Settings) { s.Concurrency = 100 })
			claim("", 0)
			claim("temporal", 1)
			w.save(func(s *sluice.Settings) { s.Fair = true })
			claim("", 0)
			w.save(func(s *sluice.Settings) { s.Engine = "" })
			claim("temporal", 0)
			claim("", 1)
			for _, id := range ids {
				w.inState(id, sluice.StateClaimed)
			}
		}},
		{"R-301", "An intent renews the claim, and a claim with an intent is renewed like any other.", "I-16, C-42", func(w *world) {
			w.add(sluice.EnqueueOptions{})
			c := w.claimOne()
			w.Advance(50 * time.Second)
			w.ok(w.intend(c))
			w.Advance(50 * time.Second)
			equal(w, "overdue", len(w.dispatches(engine.DispatchFilter{Overdue: true})), 0)
			lost, err := w.Store.Renew(w.ctx, []sluice.Renewal{{ID: c.ID, Token: c.Token, Lease: time.Minute}})
			w.ok(err)
			equal(w, "lost", len(lost), 0)
			w.Advance(50 * time.Second)
			equal(w, "overdue when renewed", len(w.dispatches(engine.DispatchFilter{Overdue: true})), 0)
			w.Advance(20 * time.Second)
			equal(w, "overdue", len(w.dispatches(engine.DispatchFilter{Overdue: true})), 1)
		}},
		{"R-302", "An intent with an old token changes nothing, gives ErrLost, and is audited; so is one for a job that is not claimed. In a batch it fails alone.", "I-2, I-8, I-16", func(w *world) {
			w.addMany(4)
			claims := w.claim(4)
			for _, c := range claims[:3] {
				w.done(by(sluice.EventRelease, c))
			}
			again := w.claim(2)
			w.done(by(sluice.EventDispatch, claims[3]))
			batch := []engine.Intent{intentOf(claims[0]), intentOf(again[0]), intentOf(claims[1]), intentOf(again[1]), intentOf(claims[2]), intentOf(claims[3])}
			batch = append(batch, engine.Intent{ID: sluice.NewID(), Token: sluice.NewToken(), Ref: "x", Engine: engineName})
			errs, err := engine.Given(w.Store).RecordIntent(w.ctx, batch)
			w.ok(err)
			for i, err := range errs {
				if i == 1 || i == 3 {
					w.ok(err)
					equal(w, "engine", w.inState(batch[i].ID, sluice.StateClaimed).Engine, engineName)
					continue
				}
				w.is(err, sluice.ErrLost)
				if i < len(errs)-1 {
					equal(w, "refused", w.toldLost(batch[i].ID).Reason, "refused: intend")
				}
			}
			equal(w, "engine of one that waits", w.inState(claims[2].ID, sluice.StateQueued).Engine, "")
			equal(w, "engine of one that runs", w.inState(claims[3].ID, sluice.StateDispatched).Engine, "")
		}},
		{"R-303", "The same intent may be sent again. Another run than was intended before is refused, because that one may exist; so is an intent that names no run or no engine.", "I-16, I-20", func(w *world) {
			w.addMany(3)
			claims := w.claim(3)
			c := claims[0]
			w.ok(w.intend(c))
			w.Advance(50 * time.Second)
			w.ok(w.intend(c))
			w.Advance(50 * time.Second)
			equal(w, "overdue", len(w.dispatches(engine.DispatchFilter{Overdue: true})), 0)
			otherRef, otherEngine := intentOf(c), intentOf(c)
			otherRef.Ref += "-a2"
			otherEngine.Engine = "local"
			for _, in := range []engine.Intent{otherRef, otherEngine} {
				w.is(w.only(engine.Given(w.Store).RecordIntent(w.ctx, []engine.Intent{in})), sluice.ErrNotAllowed)
			}
			j := w.job(c.ID)
			equal(w, "ref", j.Ref, refOf(c))
			equal(w, "engine", j.Engine, engineName)

			twice := []engine.Intent{intentOf(claims[1]), intentOf(claims[1]), intentOf(claims[1])}
			twice[2].Ref = "another"
			errs, err := engine.Given(w.Store).RecordIntent(w.ctx, twice)
			w.ok(err)
			w.ok(errors.Join(errs[:2]...))
			w.is(errs[2], sluice.ErrNotAllowed)

			noRef, noEngine := intentOf(claims[2]), intentOf(claims[2])
			noRef.Ref, noEngine.Engine = "", ""
			for _, in := range []engine.Intent{noRef, noEngine} {
				w.is(w.only(engine.Given(w.Store).RecordIntent(w.ctx, []engine.Intent{in})), sluice.ErrInvalid)
			}
			equal(w, "ref of what names nothing", w.job(claims[2].ID).Ref, "")
		}},
		{"R-304", "Upkeep that recovers a job while its holder intends a run: one of the two wins, never both.", "I-2, I-16", func(w *world) {
			w.addMany(60)
			claims := w.claim(60)
			w.Advance(2 * time.Minute)
			var wait sync.WaitGroup
			var requeued, noted atomic.Int32
			for n, store := range []sluice.Store{w.Store, w.Other, w.Store, w.Other} {
				wait.Go(func() {
					out, err := store.Recover(w.ctx, queue, 20, "upkeep")
					if err != nil {
						w.Errorf("recover: %v", err)
					}
					requeued.Add(int32(out.Requeued))
				})
				wait.Go(func() { noted.Add(int32(w.intendAll(store, claims[15*n:15*(n+1)]))) })
			}
			wait.Wait()
			equal(w, "won by either", int(requeued.Load()+noted.Load()), 60)
			intended := 0
			for _, c := range claims {
				switch j := w.job(c.ID); {
				case j.Engine == engineName && j.State == sluice.StateClaimed:
					intended++
				case j.Engine != "" || j.State != sluice.StateQueued || j.Recoveries != 1:
					w.Fatalf("job %s is %s at %q, with %d recoveries", j.ID, j.State, j.Engine, j.Recoveries)
				}
			}
			equal(w, "intended", intended, int(noted.Load()))
		}},
	}
}

func listedRules() []Rule {
	return []Rule{
		{"R-305", "Dispatches lists the jobs of a queue of which a run is intended or under way, by id, with their tokens and without their payloads; page by page, each once.", "I-17", func(w *world) {
			var want []sluice.ID
			for n := range 9 {
				w.receipts(insertOf(sluice.EnqueueOptions{ID: idOf(n), MaxAttempts: 4}))
			}
			for n, c := range w.claim(9) {
				if n < 7 {
					w.ok(w.intend(c))
					want = append(want, c.ID)
				}
				if n < 4 || n == 8 { // the last has no intent
					w.done(by(sluice.EventDispatch, c))
				}
			}
			w.addMany(2)
			slices.SortFunc(want, func(a, b sluice.ID) int { return bytes.Compare(a[:], b[:]) })
			for _, limit := range []int{0, 1, 3, 7, 100} {
				var got []sluice.ID
				filter := engine.DispatchFilter{Queue: queue, Limit: limit}
				for range 9 {
					page, err := engine.Given(w.Other).Dispatches(w.ctx, filter)
					w.ok(err)
					for _, c := range page {
						got = append(got, c.ID)
						filter.After = c.ID
						w.like(c)
					}
				}
				if !slices.Equal(got, want) {
					w.Fatalf("pages of %d list %v, want %v", limit, got, want)
				}
			}
		}},
		{"R-306", "Dispatches tells the overdue from the others, finds those that are asked for by id, and gives none of another queue.", "I-16, I-17, D-21", func(w *world) {
			w.addMany(4)
			claims := w.claim(4)
			for _, c := range claims {
				w.ok(w.intend(c))
			}
			w.done(by(sluice.EventDispatch, claims[0]))
			w.Advance(50 * time.Second)
			w.ok(w.intend(claims[1]))
			w.Advance(50 * time.Second)
			other := insertOf(sluice.EnqueueOptions{})
			other.Queue = "invoices"
			w.receipts(other)
			request := claimOf(2, 1)
			request.Queue = other.Queue
			w.ok(w.intend(w.claimAs(w.Store, request)[0]))

			all := []sluice.ID{claims[0].ID, claims[1].ID, claims[2].ID, claims[3].ID, other.ID, sluice.NewID()}
			for _, c := range []struct {
				what   string
				filter engine.DispatchFilter
				want   []sluice.ID
			}{
				{"all", engine.DispatchFilter{}, all[:4]},
				{"of the other queue", engine.DispatchFilter{Queue: "invoices"}, all[4:5]},
				{"of no queue", engine.DispatchFilter{Queue: "nobody's"}, nil},
				{"overdue", engine.DispatchFilter{Overdue: true}, all[2:4]},
				{"by id", engine.DispatchFilter{IDs: all}, all[:4]},
				{"one by id, twice", engine.DispatchFilter{IDs: []sluice.ID{all[1], all[1]}}, all[1:2]},
				{"overdue by id", engine.DispatchFilter{IDs: all[1:3], Overdue: true}, all[2:3]},
				{"none by id", engine.DispatchFilter{IDs: all[4:]}, nil},
				{"the overdue behind one", engine.DispatchFilter{Overdue: true, After: smaller(all[2], all[3])}, []sluice.ID{larger(all[2], all[3])}},
				{"by id behind one", engine.DispatchFilter{IDs: all[2:4], After: smaller(all[2], all[3])}, []sluice.ID{larger(all[2], all[3])}},
				{"by id, the first", engine.DispatchFilter{IDs: all[2:4], Limit: 1}, []sluice.ID{smaller(all[2], all[3])}},
			} {
				got := w.dispatches(c.filter)
				want := slices.Clone(c.want)
				slices.SortFunc(want, func(a, b sluice.ID) int { return bytes.Compare(a[:], b[:]) })
				if !slices.Equal(got, want) {
					w.Errorf("%s: got %v, want %v", c.what, got, want)
				}
			}
		}},
	}
}

func runRules() []Rule {
	return []Rule{
		{"R-307", "A dispatched job keeps its token, engine and the ref that was intended, unless the engine names the run otherwise; its token settles it, and history keeps the ref.", "I-17, A-32, D-25", func(w *world) {
			for _, event := range []sluice.Event{sluice.EventComplete, sluice.EventBury} {
				c := w.dispatched("")
				j := w.inState(c.ID, sluice.StateDispatched)
				equal(w, "ref", j.Ref, refOf(c))
				equal(w, "engine", j.Engine, engineName)
				s := by(event, c)
				s.Token = sluice.NewToken()
				w.is(w.settle(s), sluice.ErrLost)
				w.done(by(event, c))
				j = w.inState(c.ID, sluice.MoveOf(event).To)
				equal(w, "ref kept", j.Ref, refOf(c))
				equal(w, "engine of what has ended", j.Engine, "")
				equal(w, "listed", len(w.dispatches(engine.DispatchFilter{})), 0)
			}
			c := w.dispatched("named-otherwise")
			equal(w, "ref", w.job(c.ID).Ref, "named-otherwise")
		}},
		{"R-308", "A run that failed may be retried: that counts an attempt and keeps its error, and the job waits without ref and engine until another run is intended.", "I-5, I-6, D-53", func(w *world) {
			c := w.dispatched("")
			s := by(sluice.EventRetry, c)
			s.Delay, s.Holder = time.Minute, "upkeep"
			w.done(s)
			j := w.inState(c.ID, sluice.StateQueued)
			equal(w, "attempts", j.Attempts, 1)
			w.blank(j)
			attempts, err := w.Store.Attempts(w.ctx, c.ID)
			w.ok(err)
			equal(w, "attempts kept", len(attempts), 1)
			equal(w, "error", attempts[0].Error, s.Error)
			equal(w, "holder", attempts[0].Holder, holder(1))
			w.is(w.settle(by(sluice.EventComplete, c)), sluice.ErrLost)
			w.Advance(2 * time.Minute)
			next := w.claimOne()
			equal(w, "attempts of the claim", next.Attempts, 1)
			in := intentOf(next)
			in.Ref += "-a2"
			w.ok(w.only(engine.Given(w.Store).RecordIntent(w.ctx, []engine.Intent{in})))
			equal(w, "ref of the next run", w.job(c.ID).Ref, in.Ref)
		}},
		{"R-309", "A claim of which the engine knows no run goes back to its place by settlement: that counts a recovery and no attempt, whether its lease ran out or not, and only once. A dispatched job does not.", "I-5, I-16, D-21, D-51", func(w *world) {
			for _, wait := range []time.Duration{0, time.Hour} {
				id := w.add(sluice.EnqueueOptions{DueAt: w.Now().Add(-time.Hour)})
				c := w.claimOne()
				w.ok(w.intend(c))
				w.Advance(wait)
				due := w.job(id).DueAt
				s := by(sluice.EventRecover, c)
				s.Reason, s.Holder = "no run was ever started", "upkeep"
				w.done(s)
				w.done(s)
				j := w.inState(id, sluice.StateQueued)
				equal(w, "recoveries", j.Recoveries, 1)
				equal(w, "attempts", j.Attempts, 0)
				equal(w, "releases", j.Releases, 0)
				equal(w, "due", j.DueAt.Equal(due), true)
				w.blank(j)
				told := w.told(id, sluice.EventRecover)
				equal(w, "audit by", told.Actor, "upkeep")
				equal(w, "reason", told.Reason, s.Reason)
				w.done(by(sluice.EventComplete, w.claimOne()))
			}
			c := w.dispatched("")
			w.is(w.settle(by(sluice.EventRecover, c)), sluice.ErrNotAllowed)
			equal(w, "engine", w.inState(c.ID, sluice.StateDispatched).Engine, engineName)
		}},
		{"R-310", "A job that is buried as poison counts a recovery and no attempt.", "I-5, E-8", func(w *world) {
			c := w.intended()
			failed := w.intended()
			poison := by(sluice.EventBury, c)
			poison.Poison, poison.Error, poison.Reason = true, storing.PoisonError(5), "recoveries spent"
			errs, err := w.Store.Settle(w.ctx, []sluice.Settlement{poison, by(sluice.EventBury, failed)})
			w.ok(err)
			w.ok(errors.Join(errs...))
			j := w.inState(c.ID, sluice.StateDead)
			equal(w, "recoveries", j.Recoveries, 1)
			equal(w, "attempts", j.Attempts, 0)
			equal(w, "error", j.Error, poison.Error)
			equal(w, "reason", w.told(c.ID, sluice.EventBury).Reason, poison.Reason)
			attempts, err := w.Store.Attempts(w.ctx, c.ID)
			w.ok(err)
			equal(w, "attempts kept", len(attempts), 0)
			j = w.inState(failed.ID, sluice.StateDead)
			equal(w, "recoveries of the other", j.Recoveries, 0)
			equal(w, "attempts of the other", j.Attempts, 1)
		}},
		{"R-311", "A job may be cancelled while its run is intended or under way: nobody follows it then, its token is worth nothing, and history keeps the ref.", "D-34", func(w *world) {
			for _, c := range []*sluice.Claim{w.intended(), w.dispatched("")} {
				w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{c.ID}, person("enough"))))
				j := w.inState(c.ID, sluice.StateCancelled)
				equal(w, "ref", j.Ref, refOf(c))
				equal(w, "engine", j.Engine, "")
				w.is(w.settle(by(sluice.EventComplete, c)), sluice.ErrLost)
				w.is(w.intend(c), sluice.ErrLost)
			}
			equal(w, "listed", len(w.dispatches(engine.DispatchFilter{})), 0)
		}},
		{"R-312", "Of an uncertain job it stays known which run it may have, and nobody follows it; a new life has neither ref nor engine.", "I-16, I-17", func(w *world) {
			for _, began := range []bool{false, true} {
				c := w.intended()
				if began {
					w.done(by(sluice.EventDispatch, c))
				}
				w.done(by(sluice.EventDoubt, c))
				j := w.inState(c.ID, sluice.StateUncertain)
				equal(w, "ref", j.Ref, refOf(c))
				equal(w, "engine", j.Engine, engineName)
				equal(w, "listed", len(w.dispatches(engine.DispatchFilter{})), 0)
				w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{c.ID}, person("the bank says no"))))
				j = w.inState(c.ID, sluice.StateQueued)
				w.blank(j)
				next := w.claimOne()
				equal(w, "generation", next.Generation, 2)
				w.ok(w.intend(next))
				w.done(by(sluice.EventComplete, next))
			}
		}},
		{"R-313", "A claim is released with its intent where the engine started nothing, and a dead job's new life has neither ref nor engine.", "I-5, I-18", func(w *world) {
			c := w.intended()
			w.done(by(sluice.EventRelease, c))
			j := w.inState(c.ID, sluice.StateQueued)
			equal(w, "releases", j.Releases, 1)
			w.blank(j)
			c = w.claimOne()
			w.ok(w.intend(c))
			w.done(by(sluice.EventBury, c))
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{c.ID}, person("again"))))
			w.blank(w.inState(c.ID, sluice.StateQueued))
		}},
		{"R-314", "What is intended or under way is in flight, for the queue's limit and for the tenant's concurrency, until it has ended.", "I-10, H-6", func(w *world) {
			for _, limit := range []func(*sluice.Settings){
				func(s *sluice.Settings) { s.Concurrency, s.TenantConcurrency = 2, 0 },
				func(s *sluice.Settings) { s.Concurrency, s.TenantConcurrency = 0, 2 },
			} {
				w.save(limit)
				w.addOf("acme", 5)
				jobs := w.claimOnce(10).Jobs
				equal(w, "claimed", len(jobs), 2)
				for _, c := range jobs {
					w.ok(w.intend(c))
				}
				w.Advance(time.Hour)
				w.recover()
				equal(w, "beside what is overdue and intended", len(w.claimOnce(10).Jobs), 0)
				w.done(by(sluice.EventDispatch, jobs[0]))
				w.done(by(sluice.EventRecover, jobs[1]))
				equal(w, "in the place of one that was never started", len(w.claimOnce(10).Jobs), 1)
				w.done(by(sluice.EventComplete, jobs[0]))
				equal(w, "when the run has ended", len(w.claimOnce(10).Jobs), 1)
				w.empty()
			}
		}},
		{"R-528", "A job says when its run was dispatched, whatever the audit keeps: while the run goes on, while it is uncertain and in history. A job that waits again, and the next claim, say nothing of it.", "A-32", func(w *world) {
			finished := w.dispatched("")
			w.dispatchedAt(finished.ID, true)
			page, err := w.Other.Jobs(w.ctx, sluice.JobFilter{Queue: queue, States: []sluice.State{sluice.StateDispatched}, Limit: 10})
			w.ok(err)
			equal(w, "of a page", page.Jobs[0].DispatchedAt.Equal(w.job(finished.ID).DispatchedAt), true)
			w.like(w.dispatchOf(finished.ID))
			w.done(by(sluice.EventBury, finished))
			w.dispatchedAt(finished.ID, true)
			page, err = w.Other.Jobs(w.ctx, sluice.JobFilter{Queue: queue, States: []sluice.State{sluice.StateDead}, Limit: 10})
			w.ok(err)
			equal(w, "of a page of dead letters", page.Jobs[0].DispatchedAt.Equal(w.job(finished.ID).DispatchedAt), true)
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{finished.ID}, person("again"))))
			w.dispatchedAt(finished.ID, false)
			c := w.claimOne()
			w.dispatchedAt(c.ID, false)
			w.done(by(sluice.EventComplete, c))
			w.dispatchedAt(c.ID, false)

			retried := w.dispatched("")
			w.done(by(sluice.EventRetry, retried))
			w.dispatchedAt(retried.ID, false)
			w.cancel(person("enough"), retried.ID)

			cancelled := w.dispatched("")
			w.cancel(person("enough"), cancelled.ID)
			w.dispatchedAt(cancelled.ID, true)

			lost := w.dispatched("")
			w.done(by(sluice.EventDoubt, lost))
			w.dispatchedAt(lost.ID, true)
			w.requeued(lost.ID, true)
			w.dispatchedAt(lost.ID, false)
		}},
	}
}
