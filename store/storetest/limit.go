package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/tenancy"
)

// refunds is the second queue that shares a limit.
const refunds = "refunds"

// namedLimitRules are those of limits that several queues share.
func namedLimitRules() []Rule {
	return slices.Concat(sharedRules(), sharedRateRules(), closedRules(), limitStoreRules())
}

func sharedRules() []Rule {
	return []Rule{
		{"R-830", "Queues that share a limit have no more jobs claimed or dispatched together than its concurrency; every way out of flight makes room for each.", "I-10", func(w *world) {
			w.share(limit.Limit{Name: "bank", Concurrency: 3}, "bank")
			w.addShared(9)
			paid := w.claimOnce(2).Jobs
			equal(w, "of the one queue", len(paid), 2)
			refunded := w.claimShared(5)
			equal(w, "of the other", len(refunded.Jobs), 1)
			equal(w, "limited", refunded.Limited, true)
			equal(w, "full", refunded.Full, true)
			equal(w, "more of the one", len(w.claimOnce(5).Jobs), 0)
			w.done(by(sluice.EventDispatch, paid[0]))
			equal(w, "beside a dispatched one", len(w.claimShared(5).Jobs), 0)
			for _, event := range []sluice.Event{sluice.EventComplete, sluice.EventRetry, sluice.EventRelease, sluice.EventBury} {
				w.done(by(event, paid[1]))
				next := w.claimShared(5)
				equal(w, "after a "+string(event), len(next.Jobs), 1)
				paid[1] = next.Jobs[0]
			}
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{paid[1].ID}, person("test"))))
			equal(w, "after a cancel", len(w.claimOnce(5).Jobs), 1)
			w.Advance(time.Hour)
			w.recover()
			equal(w, "after a recovery", len(w.claimShared(5).Jobs), 1)
		}},
		{"R-831", "A changed limit counts from the next claim on, in every process. A limit that is not stored limits nothing.", "I-10, I-15", func(w *world) {
			w.share(limit.Limit{Name: "bank", Concurrency: 2}, "ledger,bank")
			w.addShared(20)
			equal(w, "by the limit that is stored", len(w.claimOnce(5).Jobs), 2)
			w.saveLimit("bank", func(l *limit.Limit) { l.Concurrency = 5 })
			other, err := w.Other.Claim(w.ctx, claimOf(2, 10))
			w.ok(err)
			equal(w, "in the other process", len(other.Jobs), 3)
			w.saveLimit("bank", func(l *limit.Limit) { l.Concurrency = 1 })
			equal(w, "lowered below what is in flight", len(w.claimShared(5).Jobs), 0)
			w.saveLimit("ledger", func(l *limit.Limit) { l.Concurrency = 8 })
			w.saveLimit("bank", func(l *limit.Limit) { l.Concurrency = 0 })
			equal(w, "by the other limit", len(w.claimShared(5).Jobs), 3)
			w.saveNamed(refunds, func(s *sluice.Settings) { s.Limits = "" })
			equal(w, "without limits", len(w.claimShared(10).Jobs), 10)
		}},
		{"R-832", "With many holders in two processes and two queues, in flight never exceeds the limit, and every job gets its turn.", "I-10, I-11", func(w *world) {
			const most = 7
			w.share(limit.Limit{Name: "bank", Concurrency: most}, "bank")
			ids := w.addShared(80)
			var holders sync.WaitGroup
			var inFlight atomic.Int64
			for n := range 8 {
				holders.Go(func() { w.workShared(n, most, &inFlight) })
			}
			holders.Wait()
			for _, id := range ids {
				w.inState(id, sluice.StateCompleted)
			}
		}},
		{"R-843", "The first claims of a new limit hold it too, however many begin at the same moment.", "I-10", func(w *world) {
			w.addShared(20)
			for n := range 20 {
				w.share(limit.Limit{Name: fmt.Sprint("bank-", n), Concurrency: 1}, fmt.Sprint("bank-", n))
				claimed := w.claimBoth(4)
				equal(w, "claimed at the same moment", len(claimed), 1)
				w.done(by(sluice.EventComplete, claimed[0]))
			}
		}},
		{"R-833", "A queue's own limits, those of its tenants and those that it shares all hold.", "I-10, I-12", func(w *world) {
			w.share(limit.Limit{Name: "bank", Concurrency: 4}, "bank")
			w.save(func(s *sluice.Settings) { s.TenantConcurrency = 2 })
			w.addOf("acme", 5)
			w.addOf("globex", 5)
			equal(w, "two of each tenant", fmt.Sprint(w.claimAll()), "map[acme:2 globex:2]")
			w.saveLimit("bank", func(l *limit.Limit) { l.Concurrency = 100 })
			equal(w, "by the tenants' limit", len(w.claimAll()), 0)
			w.limit(tenancy.Limits{Tenant: "acme", Concurrency: new(5)})
			w.save(func(s *sluice.Settings) { s.Concurrency = 5 })
			equal(w, "by the queue's limit", fmt.Sprint(w.claimAll()), "map[acme:1]")
		}},
		{"R-834", "A claim of several queues skips one that shares limits.", "I-10", func(w *world) {
			w.share(limit.Limit{Name: "bank", Concurrency: 1}, "bank")
			w.addShared(3)
			request := claimOf(1, 10)
			for _, name := range []string{queue, refunds} {
				request.Queues = append(request.Queues, sluice.QueueClaim{Queue: name, Limit: 10, Lease: time.Minute})
			}
			equal(w, "jobs", len(w.claimAs(w.Store, request)), 0)
		}},
	}
}

func sharedRateRules() []Rule {
	return []Rule{
		{"R-835", "A limit's rate counts the starts of all its queues in its window, and a claim says when there will be more.", "I-12", func(w *world) {
			w.share(limit.Limit{Name: "bank", Rate: sluice.Rate{Jobs: 1, Per: time.Hour}, Burst: 9}, "bank")
			w.addShared(30)
			claimed := w.claimOnce(6)
			equal(w, "of the one queue", len(claimed.Jobs), 6)
			equal(w, "of the other, what the bucket holds", len(w.claimShared(6).Jobs), 3)
			claimed = w.claimShared(6)
			equal(w, "of the other", len(claimed.Jobs), 0)
			equal(w, "limited", claimed.Limited, true)
			if claimed.NextDue <= 0 || claimed.NextDue > time.Hour {
				w.Fatalf("the next start in %s, want at most 1h", claimed.NextDue)
			}
			w.Advance(20 * time.Hour)
			equal(w, "when the window is over", len(w.claimShared(20).Jobs), 9)
		}},
		{"R-836", "A limit's rate keeps the place of claimed jobs of every queue until their holders tell that they began, or never will.", "I-12, D-36", func(w *world) {
			w.share(limit.Limit{Name: "bank", Rate: sluice.Rate{Jobs: 1, Per: time.Hour}, Burst: 9}, "bank")
			w.addShared(60)
			first := w.claimTelling(5)
			equal(w, "paced", first.Paced, true)
			w.Advance(20 * time.Hour) // the bucket is full
			equal(w, "beside five that wait", len(w.claimShared(20).Jobs), 5)
			w.Advance(20 * time.Hour)
			equal(w, "when five are over, beside five that wait", len(w.claimShared(20).Jobs), 5)
			w.tell(sluice.Begun{Token: first.Jobs[0].Token, Jobs: 1, Gone: 4, Ago: 2 * time.Hour})
			w.Advance(20 * time.Hour)
			equal(w, "when all are over", len(w.claimShared(20).Jobs), 9)
		}},
		{"R-837", "In no window do more jobs of two queues start than the rate of their limit allows, with many holders in two processes that begin late, tell late, or die.", "I-12", func(w *world) {
			rate := sluice.Rate{Jobs: 40, Per: time.Second}
			w.share(limit.Limit{Name: "bank", Rate: rate}, "bank")
			for _, name := range []string{queue, refunds} {
				w.saveNamed(name, func(s *sluice.Settings) { s.MaxRecoveries = 10_000 })
			}
			w.addShared(200)
			KeepsRate(w, w.startByMany(6, 3*rate.Jobs, someLate, queue, refunds), rate, 0)
		}},
	}
}

func closedRules() []Rule {
	return []Rule{
		{"R-838", "A closed limit gives no job of its queues; it opens by itself, and a claim says when, or by a person. Running jobs go on.", "I-13", func(w *world) {
			w.share(limit.Limit{Name: "bank"}, "bank")
			w.addShared(9)
			running := w.claimOne()
			w.saveLimit("bank", func(l *limit.Limit) { l.Closed, l.ClosedUntil = true, w.Now().Add(time.Hour) })
			claimed := w.claimShared(5)
			equal(w, "jobs of a closed limit", len(claimed.Jobs), 0)
			equal(w, "limited", claimed.Limited, true)
			if wait := claimed.NextDue; wait < 59*time.Minute || wait > 61*time.Minute {
				w.Fatalf("it opens in %s, want 1h", wait)
			}
			w.done(by(sluice.EventComplete, running))
			w.Advance(61 * time.Minute)
			equal(w, "when it has opened", len(w.claimShared(2).Jobs), 2)
			w.saveLimit("bank", func(l *limit.Limit) { l.Closed, l.ClosedUntil = true, time.Time{} })
			claimed = w.claimOnce(5)
			equal(w, "without an end", len(claimed.Jobs), 0)
			equal(w, "full", claimed.Full, true)
			w.saveLimit("bank", func(l *limit.Limit) { l.Closed = false })
			equal(w, "when a person has opened it", len(w.claimOnce(2).Jobs), 2)
		}},
	}
}

func limitStoreRules() []Rule {
	return []Rule{
		{"R-839", "A store lists limits by name with their queues, the jobs in flight and the wait for the next start; it leaves out unknown names.", "I-22", func(w *world) {
			w.share(limit.Limit{Name: "bank", Rate: sluice.Rate{Jobs: 5, Per: time.Hour}, Concurrency: 9}, "bank")
			w.saveLimit("accounts", func(l *limit.Limit) { l.Burst = 4 })
			w.saveNamed("other", func(*sluice.Settings) {})
			w.addShared(5)
			equal(w, "claimed", len(w.claimOnce(1).Jobs), 1)
			w.claimShared(1)
			uses, err := limit.Given(w.Other).LimitUses(w.ctx, []string{"bank", "unknown"})
			w.ok(err)
			equal(w, "limits", len(uses), 1)
			equal(w, "queues", fmt.Sprint(uses[0].Queues), "[payments refunds]")
			equal(w, "in flight", uses[0].InFlight, 1)
			if wait := uses[0].Wait; wait <= 0 || wait > 12*time.Minute {
				w.Fatalf("the next start in %s, want at most 12m", wait)
			}
			all, err := limit.Given(w.Store).Limits(w.ctx, nil)
			w.ok(err)
			equal(w, "names", all[0].Name+" "+all[1].Name, "accounts bank")
			equal(w, "figures", all[1].String(), "rate=5/h concurrency=9")
		}},
		{"R-840", "A limit that the setting of a queue names cannot be deleted. A deleted one is audited, and what was claimed under it is forgotten.", "I-15, I-22", func(w *world) {
			w.share(limit.Limit{Name: "bank", Rate: sluice.Rate{Jobs: 1, Per: time.Hour}}, "bank")
			w.addShared(5)
			equal(w, "claimed", len(w.claimOnce(5).Jobs), 1)
			store := limit.Given(w.Store)
			w.is(store.DeleteLimit(w.ctx, "unknown", person("test")), sluice.ErrNotFound)
			w.is(store.DeleteLimit(w.ctx, "bank", person("test")), sluice.ErrNotAllowed)
			for _, name := range []string{queue, refunds} {
				w.saveNamed(name, func(s *sluice.Settings) { s.Limits = "" })
			}
			w.ok(store.DeleteLimit(w.ctx, "bank", person("no bank")))
			entries, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectLimit, Name: "bank", Limit: 10})
			w.ok(err)
			equal(w, "entries", len(entries), 2)
			equal(w, "the last", entries[0].Event, audit.EventDelete)
			equal(w, "why", entries[0].Reason, "no bank")
			w.share(limit.Limit{Name: "bank", Rate: sluice.Rate{Jobs: 1, Per: time.Hour}}, "bank")
			equal(w, "of a new one of that name", len(w.claimOnce(5).Jobs), 1)
		}},
		{"R-934", "To undo the last change of a limit brings back its figures, and a second undo the change. A limit that was only made has none.", "I-15, I-22", func(w *world) {
			w.share(limit.Limit{Name: "bank", Concurrency: 3}, "bank")
			_, err := limit.Undo(w.ctx, w.Store, "bank", person("a slip"))
			w.is(err, sluice.ErrNotFound)
			w.share(limit.Limit{Name: "bank", Concurrency: 9, Rate: sluice.Rate{Jobs: 1, Per: time.Hour}}, "bank")
			for _, want := range []int{3, 9} {
				undone, err := limit.Undo(w.ctx, w.Other, "bank", person("a slip"))
				w.ok(err)
				equal(w, "concurrency", undone.Concurrency, want)
				equal(w, "whether there is a rate", undone.Rate.IsZero(), want == 3)
			}
			_, err = limit.Undo(w.ctx, w.Store, "unknown", person("a slip"))
			w.is(err, sluice.ErrNotFound)
		}},
		{"R-841", "Why says which limit a job waits for, until when, and that a limit is not stored.", "I-22", func(w *world) {
			w.share(limit.Limit{Name: "bank", Concurrency: 1}, "bank,ledger")
			ids := w.addShared(2)
			equal(w, "claimed", len(w.claimOnce(1).Jobs), 1)
			equal(w, "closed", fmt.Sprint(w.limitReasons(ids[3])), "[false true]")
			w.saveLimit("ledger", func(l *limit.Limit) { l.Closed, l.ClosedUntil = true, w.Now().Add(time.Hour) })
			equal(w, "both closed", fmt.Sprint(w.limitReasons(ids[3])), "[false false]")
		}},
		{"R-842", "The settings of a queue take names of limits only.", "I-15", func(w *world) {
			settings := sluice.DefaultSettings()
			for _, wrong := range []string{"bank,", ",", "the bank", "bank, ledger", "*"} {
				settings.Limits = wrong
				w.is(settings.Check(), sluice.ErrInvalid)
			}
			settings.Limits = "bank,ledger-2"
			w.ok(settings.Check())
		}},
	}
}

// share stores a limit, and lets both queues share limits.
func (w *world) share(of limit.Limit, setting string) {
	w.Helper()
	w.saveLimit(of.Name, func(l *limit.Limit) {
		of.Version = l.Version
		*l = of
	})
	for _, name := range []string{queue, refunds} {
		w.saveNamed(name, func(s *sluice.Settings) { s.Limits = setting })
	}
}

// saveLimit stores a change of a limit.
func (w *world) saveLimit(name string, change func(*limit.Limit)) {
	w.Helper()
	_, err := limit.Change(w.ctx, w.Store, name, person("test"), func(l *limit.Limit) error {
		change(l)
		return nil
	})
	w.ok(err)
}

// addShared enqueues n jobs in each of the two queues, those of the usual queue first.
func (w *world) addShared(n int) []sluice.ID {
	w.Helper()
	ids := w.addMany(n)
	inserts := make([]sluice.Insert, n)
	for i := range inserts {
		inserts[i] = insertOf(sluice.EnqueueOptions{})
		inserts[i].Queue = refunds
		ids = append(ids, inserts[i].ID)
	}
	w.receipts(inserts...)
	return ids
}

// claimShared claims from the second queue, once.
func (w *world) claimShared(most int) sluice.Claimed {
	w.Helper()
	if w.Refresh != nil {
		w.Refresh()
	}
	request := claimOf(1, most)
	request.Queue = refunds
	claimed, err := w.Store.Claim(w.ctx, request)
	w.ok(err)
	return claimed
}

// claimBoth claims from both queues and through both stores at the same moment, until somebody has got a job.
func (w *world) claimBoth(holders int) (claimed []*sluice.Claim) {
	w.Helper()
	var mu sync.Mutex
	for len(claimed) == 0 {
		var all sync.WaitGroup
		for n := range holders {
			all.Go(func() {
				request := claimOf(n, 2)
				request.Queue = []string{queue, refunds}[n%2]
				got, err := []sluice.Store{w.Store, w.Other}[n/2%2].Claim(w.ctx, request)
				if err != nil {
					w.Errorf("claim: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				claimed = append(claimed, got.Jobs...)
			})
		}
		all.Wait()
		if w.Failed() {
			w.FailNow()
		}
	}
	return claimed
}

// workShared claims from one of two queues and completes until nothing waits there, and looks each time how much is in
// flight in both.
func (w *world) workShared(n, most int, inFlight *atomic.Int64) {
	store, own := w.Store, queue
	if n%2 == 1 {
		store = w.Other
	}
	if n%4 > 1 {
		own = refunds
	}
	for {
		request := claimOf(n, 1+n%3)
		request.Queue = own
		claimed, err := store.Claim(w.ctx, request)
		if err != nil {
			w.Errorf("claim: %v", err)
			return
		}
		if sum := inFlight.Add(int64(len(claimed.Jobs))); sum > int64(most) {
			w.Errorf("%d are in flight, and %d are allowed", sum, most)
			return
		}
		var settlements []sluice.Settlement
		for _, c := range claimed.Jobs {
			settlements = append(settlements, by(sluice.EventComplete, c))
		}
		inFlight.Add(-int64(len(claimed.Jobs)))
		if errs, err := store.Settle(w.ctx, settlements); err != nil || errors.Join(errs...) != nil {
			w.Errorf("settle: %v %v", err, errs)
			return
		}
		depth, err := store.Depth(w.ctx, own, sluice.DepthLimit)
		if err != nil || len(claimed.Jobs) == 0 && depth.Ready == 0 {
			w.ok(err)
			return
		}
	}
}

// limitReasons says which reasons of limits let a job pass.
func (w *world) limitReasons(id sluice.ID) (open []bool) {
	w.Helper()
	why, err := explain.Job(w.ctx, w.Store, id)
	w.ok(err)
	for _, reason := range why.Reasons {
		if reason.Name == "limit" {
			open = append(open, reason.Open)
		}
	}
	return open
}
