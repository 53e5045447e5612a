package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/pressure"
)

// limited makes a job of a queue with limits.
func limited(change func(*sluice.Insert)) sluice.Insert {
	in := insertOf(sluice.EnqueueOptions{})
	change(&in)
	return in
}

// full makes sure that an enqueue is refused whole, because a queue or a tenant is full.
func (w *world) full(inserts ...sluice.Insert) *pressure.FullError {
	w.Helper()
	receipts, err := w.Store.Enqueue(w.ctx, inserts)
	w.is(err, pressure.ErrFull)
	equal(w, "receipts", len(receipts), len(inserts))
	var batch *sluice.BatchError
	if !errors.As(err, &batch) || len(batch.Failed) != len(inserts) || batch.Total != len(inserts) {
		w.Fatalf("the error is %v, want one that refuses all %d jobs", err, len(inserts))
	}
	var full *pressure.FullError
	errors.As(batch.Failed[0], &full)
	for _, in := range inserts {
		_, err := w.Store.Job(w.ctx, in.ID)
		w.is(err, sluice.ErrNotFound)
	}
	return full
}

// noRoom is full for rules that need no numbers.
func (w *world) noRoom(inserts ...sluice.Insert) {
	w.Helper()
	_ = w.full(inserts...)
}

// soon repeats an enqueue until there is room, as a process may count again only in a moment.
func (w *world) soon(in sluice.Insert) {
	w.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		_, err := w.Store.Enqueue(w.ctx, []sluice.Insert{in})
		if err == nil {
			return
		}
		w.is(err, pressure.ErrFull)
		if time.Now().After(end) {
			w.Fatalf("there is room, and after a minute the error is still %v", err)
		}
	}
}

// waiting makes sure how many jobs wait.
func (w *world) waiting(tenant string, want int) {
	w.Helper()
	got, err := pressure.Given(w.Store).WaitingJobs(w.ctx, queue, tenant, 10_000)
	w.ok(err)
	equal(w, "waiting jobs", got, want)
}

// counted returns what the store has refused and shed. Without counts it returns what is wanted.
func (w *world) counted(want pressure.Counts) pressure.Counts {
	if w.CountsNothing {
		return want
	}
	return pressure.Given(w.Store).PressureCounts()[queue]
}

func pressureRules() []Rule {
	three := func(in *sluice.Insert) { in.MaxWaiting = 3 }
	return []Rule{
		{"R-700", "A full queue refuses jobs with its numbers, stores none of a call, and takes jobs again when some have been claimed.", "[back-pressure](guide/back-pressure.md)", func(w *world) {
			w.receipts(limited(three), limited(three))
			full := w.full(limited(three), limited(three))
			equal(w, "queue", full.Queue, queue)
			equal(w, "limit, waiting and jobs", [3]int{full.Limit, full.Waiting, full.Jobs}, [3]int{3, 2, 2})
			equal(w, "when to try again is known", full.RetryAfter > 0, true)
			w.receipts(limited(three))
			w.noRoom(limited(three))
			w.claimOne()
			w.soon(limited(three))
			w.waiting("", 3)
			equal(w, "refused", w.counted(pressure.Counts{Refused: 3}).Refused >= 3, true)
		}},
		{"R-701", "Jobs that are due later and jobs that wait for others count as waiting; jobs that run or have ended do not.", "[back-pressure](guide/back-pressure.md)", func(w *world) {
			first := w.add(sluice.EnqueueOptions{})
			w.done(by(sluice.EventComplete, w.claimOne()))
			w.add(sluice.EnqueueOptions{})
			running := w.claimOne()
			w.waiting("", 0)
			w.add(sluice.EnqueueOptions{Delay: time.Hour})
			w.add(sluice.EnqueueOptions{After: []sluice.ID{first, running.ID}})
			w.receipts(limited(three))
			w.waiting("", 3)
			w.noRoom(limited(three))
		}},
		{"R-702", "More jobs in one call than the limit allows never fit, and the error says that they must be split.", "[back-pressure](guide/back-pressure.md)", func(w *world) {
			full := w.full(limited(three), limited(three), limited(three), limited(three))
			equal(w, "when to try again", full.RetryAfter, 0)
			w.waiting("", 0)
		}},
		{"R-703", "A full tenant is refused, and the other tenants of the queue are not.", "[back-pressure](guide/back-pressure.md)", func(w *world) {
			w.save(func(s *sluice.Settings) { s.TenantMaxWaiting = 2 })
			of := func(tenant string) sluice.Insert {
				return limited(func(in *sluice.Insert) { in.Tenant, in.TenantMaxWaiting, in.ByTenant = tenant, 2, true })
			}
			w.receipts(of("acme"), of("acme"))
			full := w.full(of("acme"))
			equal(w, "tenant", full.Tenant, "acme")
			equal(w, "limit", full.Limit, 2)
			w.receipts(of("globex"))
			w.receipts(limited(func(in *sluice.Insert) { in.TenantMaxWaiting, in.ByTenant = 2, true }))
			w.waiting("acme", 2)
			w.waiting("globex", 1)
			w.waiting("", 4)
		}},
		{"R-704", "A duplicate takes no room, and a job that replaces another takes its room.", "[back-pressure](guide/back-pressure.md), I-7", func(w *world) {
			keyed := func(rule sluice.OnDuplicate) sluice.Insert {
				in := insertOf(sluice.EnqueueOptions{Key: "k", OnDuplicate: rule})
				in.MaxWaiting = 4
				return in
			}
			w.receipts(keyed(sluice.Keep))
			w.receipts(keyed(sluice.Keep))
			w.receipts(keyed(sluice.Replace))
			four := func(in *sluice.Insert) { in.MaxWaiting = 4 }
			w.receipts(limited(four), limited(four), limited(four))
			w.noRoom(limited(four))
		}},
		{"R-1042", "Jobs that are sent again need no room in the queue that they fill, and nothing is shed for them; new jobs beside them need room.", "[back-pressure](guide/back-pressure.md), I-7", sentAgain},
		{"R-705", "A full queue that sheds cancels the waiting jobs of the lowest priority, of these the last due, for a more urgent job; an equal or less urgent one is refused.", "[back-pressure](guide/back-pressure.md)", shedsTheLowest},
		{"R-706", "Shedding cancels no job that runs, that waits in an order or for another, or that another runs after.", "[back-pressure](guide/back-pressure.md), C-5", shedsOnlyPlainJobs},
		{"R-707", "A job that is shed frees its key, and the audit tells why it was cancelled.", "[back-pressure](guide/back-pressure.md), I-7", func(w *world) {
			old := w.add(sluice.EnqueueOptions{Key: "k", Priority: 9})
			w.receipts(limited(func(in *sluice.Insert) { in.MaxWaiting, in.Shed = 1, true }))
			w.inState(old, sluice.StateCancelled)
			entry := w.told(old, sluice.EventCancel)
			equal(w, "actor", entry.Actor, "sluice")
			equal(w, "reason", entry.Reason, "shed: too many jobs waited")
			equal(w, "the key is free", w.receipt(sluice.EnqueueOptions{Key: "k"}).Duplicate, false)
			equal(w, "shed", w.counted(pressure.Counts{Shed: 1}).Shed, 1)
		}},
		{"R-708", "In a queue that serves its tenants in turns, a full tenant sheds its own jobs, and a full queue jobs of any tenant.", "[back-pressure](guide/back-pressure.md)", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Fair = true })
			of := func(tenant string, priority int, change func(*sluice.Insert)) sluice.Insert {
				return limited(func(in *sluice.Insert) {
					in.Tenant, in.Priority, in.ByTenant, in.Shed = tenant, priority, true, true
					change(in)
				})
			}
			none := func(*sluice.Insert) {}
			lowest, low, urgent := of("globex", 10, none), of("acme", 8, none), of("acme", 2, none)
			w.receipts(lowest, low, urgent)
			w.receipts(of("acme", 3, func(in *sluice.Insert) { in.TenantMaxWaiting = 2 }))
			w.inState(low.ID, sluice.StateCancelled)
			w.inState(lowest.ID, sluice.StateQueued)
			w.receipts(of("acme", 3, func(in *sluice.Insert) { in.MaxWaiting = 3 }))
			w.inState(lowest.ID, sluice.StateCancelled)
			w.inState(urgent.ID, sluice.StateQueued)
			w.waiting("", 3)
		}},
		{"R-709", "Of many producers at once through two processes, the queue takes no more than its limit and what the other process enqueues between two counts.", "[back-pressure](guide/back-pressure.md)", manyProducers},
	}
}

func sentAgain(w *world) {
	of := func(priority int) sluice.Insert {
		return limited(func(in *sluice.Insert) { in.Priority, in.MaxWaiting, in.Shed = priority, 3, true })
	}
	urgent, others := of(1), []sluice.Insert{of(9), of(9)}
	w.receipts(urgent)
	w.receipts(others...)
	for _, call := range [][]sluice.Insert{{urgent}, others, {urgent, others[0], others[1]}} {
		for i, receipt := range w.receipts(call...) {
			equal(w, "the receipt of a job that is sent again", receipt, sluice.Receipt{ID: call[i].ID, Duplicate: true})
		}
	}
	for _, in := range append(others, urgent) {
		w.inState(in.ID, sluice.StateQueued)
	}
	w.claimOne()
	w.receipts(others...)
	fresh := of(9)
	w.soon(fresh)
	_, err := w.Store.Enqueue(w.ctx, []sluice.Insert{others[0], of(9)})
	w.is(err, pressure.ErrFull)
	w.waiting("", 3)
}

func shedsTheLowest(w *world) {
	of := func(priority int, delay time.Duration) sluice.Insert {
		return limited(func(in *sluice.Insert) {
			in.Priority, in.Delay, in.MaxWaiting, in.Shed = priority, delay, 4, true
		})
	}
	later, soon, middle, urgent := of(9, 2*time.Hour), of(9, time.Hour), of(5, 0), of(1, 0)
	w.receipts(later, soon, middle, urgent)
	w.noRoom(of(9, 0))
	w.noRoom(of(10, 0))
	w.receipts(of(8, 0))
	w.inState(later.ID, sluice.StateCancelled)
	w.inState(soon.ID, sluice.StateQueued)
	w.receipts(of(4, 0), of(4, 0)) // the one of priority 9, and the one of 8
	w.inState(soon.ID, sluice.StateCancelled)
	w.inState(middle.ID, sluice.StateQueued)
	w.noRoom(of(2, 0), of(4, 0)) // one of them would need a job below priority 4, and there is one only
	w.inState(middle.ID, sluice.StateQueued)
	w.receipts(of(4, 0))
	w.inState(middle.ID, sluice.StateCancelled)
	w.inState(urgent.ID, sluice.StateQueued)
	w.waiting("", 4)
}

func shedsOnlyPlainJobs(w *world) {
	claimed := w.add(sluice.EnqueueOptions{Priority: 10})
	w.claimOne()
	ordered := w.add(sluice.EnqueueOptions{Priority: 10, OrderKey: "a"})
	behind := w.add(sluice.EnqueueOptions{Priority: 10, OrderKey: "a"})
	awaited := w.add(sluice.EnqueueOptions{Priority: 10})
	after := w.add(sluice.EnqueueOptions{Priority: 10, After: []sluice.ID{awaited}})
	urgent := func(in *sluice.Insert) { in.Priority, in.MaxWaiting, in.Shed = 1, 4, true }
	w.noRoom(limited(urgent))
	five := func(in *sluice.Insert) { in.Priority, in.MaxWaiting, in.Shed = 1, 5, true }
	plain := limited(five)
	plain.Priority = 6
	w.receipts(plain)
	w.receipts(limited(five))
	w.inState(plain.ID, sluice.StateCancelled)
	w.inState(claimed, sluice.StateClaimed)
	for _, id := range []sluice.ID{ordered, behind, awaited, after} {
		w.inState(id, sluice.StateQueued)
	}
}

// manyProducers enqueues from two stores until both are refused.
func manyProducers(w *world) {
	const limit, producers = 60, 8
	var wait sync.WaitGroup
	var stored [2]atomic.Int32
	for n := range producers {
		store := []sluice.Store{w.Store, w.Other}[n%2]
		wait.Go(func() {
			for range limit {
				_, err := store.Enqueue(w.ctx, []sluice.Insert{limited(func(in *sluice.Insert) {
					in.MaxWaiting, in.Labels = limit, map[string]string{"by": fmt.Sprint(n)}
				})})
				if err == nil {
					stored[n%2].Add(1)
				} else if !errors.Is(err, pressure.ErrFull) {
					w.Errorf("enqueue: %v", err)
				}
			}
		})
	}
	wait.Wait()
	one, other := int(stored[0].Load()), int(stored[1].Load())
	waiting, err := pressure.Given(w.Store).WaitingJobs(w.ctx, queue, "", 10_000)
	w.ok(err)
	equal(w, "waiting", waiting, one+other)
	if one > limit || other > limit || waiting < limit-producers {
		w.Errorf("%d and %d jobs were stored with a limit of %d", one, other, limit)
	}
	for _, store := range []sluice.Store{w.Store, w.Other} { // once each has counted, neither takes more
		if _, err := store.Enqueue(w.ctx, []sluice.Insert{limited(func(in *sluice.Insert) { in.MaxWaiting = limit - producers })}); !errors.Is(err, pressure.ErrFull) {
			w.Errorf("a full queue: %v", err)
		}
	}
}
