package storetest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/hold"
)

func afterRules() []Rule {
	return []Rule{
		{"R-280", "A job that is to run after others waits until all of them have completed; those that have already count, also long ago. It says what it waits for, and each of those that were unfinished names it as behind it.", "C-5", func(w *world) {
			done := w.add(sluice.EnqueueOptions{})
			w.finishes(done)
			a, b := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{})
			last := w.add(after("", done, a, b))
			free := w.add(after("", done))
			claims := w.claims(a, b, free)
			twin := w.add(sluice.EnqueueOptions{OrderKey: "o"})
			behind := w.add(sluice.EnqueueOptions{OrderKey: "o"})
			for of, want := range map[sluice.ID][]sluice.ID{done: nil, a: {last}, b: {last}, last: nil, twin: {behind}, behind: nil} {
				equal(w, "behind", slices.Equal(w.position(of).Behind, want), true)
			}
			w.finishes(twin, behind)
			got := w.job(last)
			equal(w, "after", len(got.After), 3)
			equal(w, "after failure", got.AfterFailure, sluice.FailureCancels)
			equal(w, "waits for one of them", got.BlockedBy == a || got.BlockedBy == b, true)
			w.done(by(sluice.EventComplete, claims[0]))
			w.claimNone("the second runs")
			w.done(by(sluice.EventRetry, claims[1]))
			w.done(by(sluice.EventComplete, w.claims(b)[0]))
			claim := w.claims(last)[0]
			equal(w, "after, as its holder gets it", len(claim.After), 3)
			w.done(by(sluice.EventComplete, claim))
			equal(w, "after, once finished", len(w.job(last).After), 3)
		}},
		{"R-281", "A job that is to run after one that is not stored is refused alone, with ErrNotFound, and so are those after it; the others of the batch are stored.", "C-5, I-8", func(w *world) {
			good, orphan := insertOf(sluice.EnqueueOptions{}), insertOf(after("", sluice.NewID()))
			second := insertOf(after("", good.ID, orphan.ID))
			third := insertOf(after("", good.ID))
			receipts, err := w.Store.Enqueue(w.ctx, []sluice.Insert{good, orphan, second, third})
			var refused *sluice.BatchError
			if !errors.As(err, &refused) || len(refused.Failed) != 2 || refused.Failed[1] == nil || refused.Failed[2] == nil {
				w.Fatalf("the error is %v, want the second and the third to be refused", err)
			}
			w.is(refused.Failed[1], sluice.ErrNotFound)
			equal(w, "receipts", len(receipts), 4)
			equal(w, "stored", receipts[3].ID, third.ID)
			_, err = w.Store.Job(w.ctx, orphan.ID)
			w.is(err, sluice.ErrNotFound)
			w.finishes(good.ID, third.ID)
		}},
		{"R-282", "Jobs of one batch may run after each other; one that came back as a duplicate stands for the job that holds its key.", "C-5, I-7", func(w *world) {
			holds := w.add(sluice.EnqueueOptions{Key: "k"})
			first := insertOf(sluice.EnqueueOptions{})
			first.Queue = "elsewhere"
			twin := insertOf(sluice.EnqueueOptions{Key: "k"})
			last := insertOf(after("", first.ID, twin.ID))
			receipts := w.receipts(first, twin, last)
			equal(w, "twin", receipts[1], sluice.Receipt{ID: holds, Duplicate: true})
			equal(w, "after", slices.Contains(w.job(last.ID).After, holds), true)
			again := w.receipts(first, twin, last)
			equal(w, "sent again", again[0].Duplicate && again[1].Duplicate && again[2].Duplicate, true)
			w.finishes(holds)
			w.claimNone("the other, in another queue, has not run")
			w.done(by(sluice.EventComplete, w.claimAs(w.Store, inQueue("elsewhere", claimOf(1, 1)))[0]))
			w.finishes(last.ID)
		}},
		{"R-283", "When one of those before it dies or is cancelled, a job is cancelled, unless it says otherwise, and so are those after it; the audit says why.", "C-5", func(w *world) {
			a, b := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{})
			second := w.add(after("", a, b))
			third := w.add(after(sluice.FailureCancels, second))
			other := w.add(after("", b))
			claims := w.claims(a, b)
			w.done(by(sluice.EventBury, claims[0]))
			w.inState(second, sluice.StateCancelled)
			w.inState(third, sluice.StateCancelled)
			reason := w.told(second, sluice.EventCancel).Reason
			equal(w, "the reason names the job and what became of it", strings.Contains(reason, a.String()) && strings.Contains(reason, "dead"), true)
			equal(w, "the reason of the next", strings.Contains(w.told(third, sluice.EventCancel).Reason, "cancelled"), true)
			w.inState(w.add(after("", a)), sluice.StateCancelled)
			w.inState(other, sluice.StateQueued)
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{b}, person("test"))))
			w.inState(other, sluice.StateCancelled)
		}},
		{"R-284", "A job may say that one before it that failed counts as done.", "C-5", func(w *world) {
			a, b := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{})
			last := w.add(after(sluice.FailureRuns, a, b))
			claims := w.claims(a, b)
			w.done(by(sluice.EventBury, claims[0]))
			w.claimNone("the other runs")
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{b}, person("test"))))
			w.finishes(last)
			w.finishes(w.add(after(sluice.FailureRuns, a)))
		}},
		{"R-285", "A job may wait until a failed one has been requeued and has completed. If that is deleted instead, the job is cancelled at once.", "C-5, I-1", func(w *world) {
			a, b := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{})
			last, other := w.add(after(sluice.FailureWaits, a, b)), w.add(after(sluice.FailureWaits, a))
			claims := w.claims(a, b)
			w.done(by(sluice.EventBury, claims[0]))
			w.done(by(sluice.EventComplete, claims[1]))
			w.repair(0)
			late := w.add(after(sluice.FailureWaits, a))
			for _, id := range []sluice.ID{last, other, late} {
				equal(w, "blocked by", w.job(id).BlockedBy, a)
			}
			w.claimNone("one is dead")
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{a}, person("mended"))))
			w.done(by(sluice.EventBury, w.claims(a)[0]))
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{a}, person("mended better"))))
			w.finishes(a)
			for _, c := range w.claims(last, other, late) {
				w.done(by(sluice.EventComplete, c))
			}
			gone := w.add(sluice.EnqueueOptions{})
			w.done(by(sluice.EventBury, w.claims(gone)[0]))
			waits, runs := w.add(after(sluice.FailureWaits, gone)), w.add(after(sluice.FailureWaits, a))
			w.ok(w.only(w.Store.DeleteJobs(w.ctx, []sluice.ID{gone}, person("test"))))
			w.inState(waits, sluice.StateCancelled)
			w.finishes(runs)
		}},
		{"R-1157", "When a failed job is deleted for which a job waits, that one is cancelled at once, also while others before it run.", "[flows](guide/pipeline.md)", func(w *world) {
			gone, runs := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{})
			last := w.add(after(sluice.FailureWaits, gone, runs))
			held := w.add(after(sluice.FailureWaits, gone))
			w.ok(hold.Hold(w.ctx, w.Store, []sluice.ID{held}, person("test")))
			w.done(by(sluice.EventBury, w.claims(gone, runs)[0]))
			w.ok(w.only(w.Store.DeleteJobs(w.ctx, []sluice.ID{gone}, person("test"))))
			w.inState(last, sluice.StateCancelled)
			w.inState(held, sluice.StateCancelled)
			equal(w, "why", strings.Contains(w.told(last, sluice.EventCancel).Reason, gone.String()), true)
		}},
		{"R-286", "A requeued job waits for what is unfinished of those before it, and not for what has failed: a person wants it to run. Both may be requeued at once.", "C-5, C-56", func(w *world) {
			a, b := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{})
			last := w.add(after("", a, b))
			claims := w.claims(a, b)
			w.done(by(sluice.EventBury, claims[0]))
			w.inState(last, sluice.StateCancelled)
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{last}, person("without the first"))))
			equal(w, "blocked by", w.job(last).BlockedBy, b)
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{last}, person("test"))))
			errs, err := w.Store.Requeue(w.ctx, []sluice.ID{last, a}, person("both"))
			w.ok(err)
			equal(w, "errors", len(slices.DeleteFunc(errs, func(err error) bool { return err == nil })), 0)
			w.done(by(sluice.EventComplete, claims[1]))
			w.finishes(a, last)
		}},
		{"R-291", "A job that was cancelled while it waited for one that then failed too, is requeued free of that.", "C-5", func(w *world) {
			first := w.add(sluice.EnqueueOptions{})
			second := w.add(sluice.EnqueueOptions{After: []sluice.ID{first}, AfterFailure: sluice.FailureWaits})
			for _, id := range []sluice.ID{second, first} {
				w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{id}, person("test"))))
			}
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{second}, person("again"))))
			equal(w, "waits for", w.job(second).BlockedBy, sluice.ID{})
			equal(w, "claimed", w.claimOne().ID, second)
		}},
		{"R-292", "Who replaces a job that waits for one which has failed does not wait for that.", "C-5, I-7", func(w *world) {
			first := w.add(sluice.EnqueueOptions{Key: "k"})
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{first}, person("test"))))
			second := w.add(sluice.EnqueueOptions{Key: "k", After: []sluice.ID{first}, AfterFailure: sluice.FailureWaits})
			third := w.receipt(sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Replace})
			equal(w, "replaced", third.Replaced, second)
			equal(w, "waits for", w.job(third.ID).BlockedBy, sluice.ID{})
			equal(w, "claimed", w.claimOne().ID, third.ID)
		}},
		{"R-287", "One that has completed goes on counting when it has been pruned.", "C-5", func(w *world) {
			w.save(func(s *sluice.Settings) { s.KeepCompleted = time.Hour })
			a, b := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{})
			last := w.add(after("", a, b))
			claims := w.claims(a, b)
			w.done(by(sluice.EventComplete, claims[0]))
			w.Advance(2 * time.Hour)
			_, err := w.Store.Prune(w.ctx, "", 100)
			w.ok(err)
			_, err = w.Store.Job(w.ctx, a)
			w.is(err, sluice.ErrNotFound)
			w.done(by(sluice.EventComplete, claims[1]))
			w.finishes(last)
		}},
		{"R-288", "A job with an order key that is to run after others as well waits for both, and those behind it wait for it.", "C-5", func(w *world) {
			a, head := w.add(sluice.EnqueueOptions{}), w.add(ordered("o"))
			second := w.add(ordered("o", func(o *sluice.EnqueueOptions) { o.After = []sluice.ID{a} }))
			third := w.add(ordered("o"))
			claims := w.claims(a, head)
			w.done(by(sluice.EventComplete, claims[1]))
			w.claimNone("it is to run after one that runs")
			equal(w, "blocked by", w.job(second).BlockedBy, a)
			w.done(by(sluice.EventComplete, claims[0]))
			w.finishes(second, third)
			b, head := w.add(sluice.EnqueueOptions{}), w.add(ordered("o"))
			fourth := w.add(ordered("o", func(o *sluice.EnqueueOptions) { o.After = []sluice.ID{b} }))
			fifth := w.add(ordered("o"))
			claims = w.claims(b, head)
			w.done(by(sluice.EventBury, claims[0]))
			w.inState(fourth, sluice.StateCancelled)
			equal(w, "blocked by", w.job(fifth).BlockedBy, head)
			w.done(by(sluice.EventComplete, claims[1]))
			w.finishes(fifth)
		}},
		{"R-289", "Any number of jobs may wait for one, and a long row of them one for the other; upkeep goes on where the end of the first stops.", "C-5, I-11", func(w *world) {
			first := w.add(sluice.EnqueueOptions{})
			row := []sluice.Insert{insertOf(after("", first))}
			for range 60 {
				row = append(row, insertOf(after("", row[len(row)-1].ID)))
			}
			var fan []sluice.Insert
			for range 2500 {
				fan = append(fan, insertOf(after(sluice.FailureRuns, first)))
			}
			w.receipts(append(row, fan...)...)
			w.done(by(sluice.EventBury, w.claims(first)[0]))
			for range 10 {
				_, err := w.Store.Repair(w.ctx, "upkeep")
				w.ok(err)
			}
			w.inState(row[60].ID, sluice.StateCancelled)
			claimed := 0
			for n := 1; n > 0; claimed += n {
				n = len(w.claim(1000))
			}
			equal(w, "claimed", claimed, len(fan))
		}},
		{"R-290", "When those before a job end at the same time, through several stores, it runs, without upkeep.", "C-5, I-1", func(w *world) {
			for range 15 {
				var before []sluice.ID
				for range 4 {
					before = append(before, w.add(sluice.EnqueueOptions{}))
				}
				last := w.add(after("", before...))
				var wait sync.WaitGroup
				for n, c := range w.claims(before...) {
					store := w.Store
					if n%2 == 1 {
						store = w.Other
					}
					wait.Go(func() {
						if errs, err := store.Settle(w.ctx, []sluice.Settlement{by(sluice.EventComplete, c)}); errors.Join(append(errs, err)...) != nil {
							w.Errorf("settle: %v %v", errs, err)
						}
					})
				}
				wait.Wait()
				w.finishes(last)
			}
		}},
		{"R-880", "A job may have another failure rule for some of those that it runs after.", "[flows](guide/pipeline.md)", func(w *world) {
			a, b, c := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{})
			mixed := sluice.EnqueueOptions{After: []sluice.ID{a, b, c}, AfterFailure: sluice.FailureCancels, AfterFailures: map[sluice.ID]sluice.AfterFailure{
				a: sluice.FailureRuns, b: sluice.FailureWaits,
			}}
			last, cancelled := w.add(mixed), w.add(mixed)
			equal(w, "as it is stored", w.job(last).AfterFailure, sluice.FailureCancels)
			equal(w, "rules of its own", len(w.job(last).AfterFailures), 2)
			claims := w.claims(a, b, c)
			w.done(by(sluice.EventBury, claims[0]))
			w.done(by(sluice.EventBury, claims[1]))
			w.inState(last, sluice.StateQueued)
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{cancelled}, person("test"))))
			for _, id := range []sluice.ID{a, b, cancelled} {
				w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("mended"))))
			}
			w.done(by(sluice.EventComplete, claims[2]))
			claims = w.claims(a, b)
			w.done(by(sluice.EventComplete, claims[1]))
			w.done(by(sluice.EventBury, claims[0]))
			equal(w, "as its holder gets it", len(w.claims(last, cancelled)[0].AfterFailures), 2)
			dead := w.add(sluice.EnqueueOptions{})
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{dead}, person("test"))))
			equal(w, "after one that failed before", w.job(w.add(sluice.EnqueueOptions{After: []sluice.ID{dead, c}, AfterFailure: sluice.FailureCancels, AfterFailures: map[sluice.ID]sluice.AfterFailure{
				dead: sluice.FailureRuns,
			}})).BlockedBy, sluice.ID{})
		}},
		{"R-1158", "If a job of one batch came back as a duplicate, the failure rule for it is the rule for the job that holds its key.", "[flows](guide/pipeline.md)", func(w *world) {
			holds, other := w.add(sluice.EnqueueOptions{Key: "k"}), w.add(sluice.EnqueueOptions{})
			twin := insertOf(sluice.EnqueueOptions{Key: "k"})
			mixed := after(sluice.FailureCancels, twin.ID, other)
			mixed.AfterFailures = map[sluice.ID]sluice.AfterFailure{twin.ID: sluice.FailureRuns}
			last, ordered := insertOf(mixed), insertOf(mixed)
			ordered.OrderKey, ordered.Key = "o", "another"
			w.receipts(twin, last, ordered)
			claims := w.claims(holds, other)
			w.done(by(sluice.EventBury, claims[0]))
			w.done(by(sluice.EventComplete, claims[1]))
			for _, c := range w.claims(last.ID, ordered.ID) {
				equal(w, "rule, as its holder gets it", c.AfterFailures[holds], sluice.FailureRuns)
			}
		}},
		{"R-888", "A job that comes after one that has failed already is cancelled at once, whatever else it waits for.", "[flows](guide/pipeline.md)", func(w *world) {
			dead, waits := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{})
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{dead}, person("test"))))
			last := w.add(after(sluice.FailureCancels, dead, waits))
			w.inState(last, sluice.StateCancelled)
			equal(w, "why", strings.Contains(w.told(last, sluice.EventCancel).Reason, dead.String()), true)
			mixed := after(sluice.FailureWaits, waits, dead)
			mixed.AfterFailures = map[sluice.ID]sluice.AfterFailure{dead: sluice.FailureCancels}
			w.inState(w.add(mixed), sluice.StateCancelled)
			w.inState(w.add(after(sluice.FailureWaits, dead, waits)), sluice.StateQueued)
		}},
		{"R-881", "One job may run after thousands, which end in any order and in batches: it waits for the last of them, and runs once.", "[flows](guide/pipeline.md)", func(w *world) {
			for _, order := range []func(i, n int) int{
				func(i, _ int) int { return i },
				func(i, n int) int { return n - 1 - i },
				func(i, n int) int { return i * 7 % n },
			} {
				inserts := make([]sluice.Insert, 701)
				ids := make([]sluice.ID, len(inserts))
				for i := range inserts {
					inserts[i] = insertOf(sluice.EnqueueOptions{})
					ids[i] = inserts[i].ID
				}
				last := insertOf(after("", ids...))
				w.receipts(append(inserts, last)...)
				claims := w.claim(len(inserts))
				equal(w, "claimed", len(claims), len(inserts))
				settled := make([]sluice.Settlement, len(claims))
				for i := range claims {
					settled[i] = by(sluice.EventComplete, claims[order(i, len(claims))])
				}
				for part := range slices.Chunk(settled, 150) {
					w.claimNone("some have not ended")
					errs, err := w.Store.Settle(w.ctx, part)
					w.ok(errors.Join(append(errs, err)...))
				}
				w.finishes(last.ID)
			}
		}},
	}
}

// after are the options of a job that is to run after others.
func after(failure sluice.AfterFailure, ids ...sluice.ID) sluice.EnqueueOptions {
	return sluice.EnqueueOptions{After: ids, AfterFailure: failure}
}

// repair lets upkeep look once for what was left behind, and makes sure of how much it was.
func (w *world) repair(want int) {
	w.Helper()
	_, err := w.Store.SaveQueue(w.ctx, sluice.Queue{Name: queue, Settings: sluice.DefaultSettings()}, person("test"))
	if err != nil && !errors.Is(err, sluice.ErrConflict) {
		w.Fatal(err)
	}
	repaired, err := w.Store.Repair(w.ctx, "upkeep")
	w.ok(err)
	equal(w, "repaired", repaired, want)
}
