package storetest

import (
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
)

// limitReplayRules are those of limits that the full audit proves.
func limitReplayRules() []Rule {
	return []Rule{
		{"R-940", "The full audit proves it: with many holders in two processes and two queues, jobs that fail, come back, are cancelled and lose their leases, and keys that close and open, no limit key ever had more units in flight than the limit, and no claim took more than the rate.", "I-10, I-12, I-22, C-35", func(w *world) {
			w.replayed(limit.Limit{Name: "host", Concurrency: 7, Rate: sluice.Rate{Jobs: 200, Per: time.Second}, Burst: 20, PerKey: true, ByCost: true})
		}},
		{"R-941", "The full audit proves the same of a limit by cost for all jobs together.", "I-10, I-12, I-22, C-35", func(w *world) {
			w.replayed(limit.Limit{Name: "gpu", Concurrency: 12, Rate: sluice.Rate{Jobs: 400, Per: time.Second}, Burst: 40, ByCost: true})
		}},
	}
}

// replayed has many holders work under a limit until every job has ended, and replays the audit.
func (w *world) replayed(of limit.Limit) {
	w.share(of, of.Name)
	for _, name := range []string{queue, refunds} {
		w.saveNamed(name, func(s *sluice.Settings) {
			s.Audit, s.MaxRecoveries, s.MaxAttempts = sluice.AuditFull, 10_000, 10_000
		})
	}
	draw := rand.New(rand.NewPCG(1, 2))
	var ids []sluice.ID
	for _, name := range []string{queue, refunds} {
		inserts := make([]sluice.Insert, 15)
		for i := range inserts {
			o := sluice.EnqueueOptions{LimitKey: []string{"a", "b", "c", ""}[draw.IntN(4)], Cost: []int{0, 1, 2, 3, 9}[draw.IntN(5)], Priority: 4 + draw.IntN(3)}
			inserts[i] = insertOf(o)
			inserts[i].Queue = name
			ids = append(ids, inserts[i].ID)
		}
		w.receipts(inserts...)
	}
	done := make(chan struct{})
	var beside, holders sync.WaitGroup
	beside.Go(func() { w.disturb(of, ids, done) })
	for n := range 6 {
		holders.Go(func() { w.workBadly(n, rand.New(rand.NewPCG(3, uint64(n)))) })
	}
	holders.Wait()
	close(done)
	beside.Wait()
	for _, id := range ids {
		if job := w.job(id); !job.State.Finished() {
			w.Fatalf("job %s is %s", id, job.State)
		}
	}
	if claims := KeepsLimit(w.ctx, w, w.Store, of.Name, queue, refunds); claims < len(ids)/2 {
		w.Fatalf("the audit has %d claims of %d jobs", claims, len(ids))
	}
}

// workBadly claims from one of two queues until nothing is unfinished there, and lets jobs fail, come back, die and be lost.
func (w *world) workBadly(n int, draw *rand.Rand) {
	store, own := w.Store, queue
	if n%2 == 1 {
		store = w.Other
	}
	if n%4 > 1 {
		own = refunds
	}
	events := []sluice.Event{sluice.EventComplete, sluice.EventComplete, sluice.EventComplete, sluice.EventRetry, sluice.EventRelease, sluice.EventBury}
	for {
		request := claimOf(n, 1+n%3)
		request.Queue, request.Lease = own, time.Second
		claimed, err := store.Claim(w.ctx, request)
		if err != nil {
			w.Errorf("claim: %v", err)
			return
		}
		var settlements []sluice.Settlement
		for _, c := range claimed.Jobs {
			if draw.IntN(12) > 0 { // else its lease ends
				settlements = append(settlements, by(events[draw.IntN(len(events))], c))
			}
		}
		errs, err := store.Settle(w.ctx, settlements)
		for _, of := range errs {
			if !errors.Is(of, sluice.ErrLost) { // somebody cancelled it
				err = errors.Join(err, of)
			}
		}
		if err != nil {
			w.Errorf("settle: %v", err)
			return
		}
		depth, err := store.Depth(w.ctx, own, sluice.DepthLimit)
		if err != nil || depth.Ready+depth.Blocked+depth.Scheduled+depth.InFlight() == 0 {
			w.noError("depth", err)
			return
		}
		if len(claimed.Jobs) == 0 {
			time.Sleep(20 * time.Millisecond) // a rate, a closed key or another's job; the claim itself is no rest
		}
	}
}

// disturb cancels some jobs, closes and opens limit keys, and recovers lost jobs, until it is told to end.
func (w *world) disturb(of limit.Limit, ids []sluice.ID, done <-chan struct{}) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		if n < 5 {
			_, err := w.Other.Cancel(w.ctx, ids[n*5:n*5+1], person("not needed"))
			w.noError("cancel", err)
		}
		if key := []string{"a", "b"}[n%2]; of.PerKey && n%4 < 2 {
			w.noError("close key", limit.CloseKey(w.ctx, w.Store, of.Name, key, time.Hour, person("429")))
		} else if of.PerKey {
			w.noError("open key", limit.OpenKey(w.ctx, w.Other, of.Name, key, person("it answers")))
		}
		for _, name := range []string{queue, refunds} {
			_, err := w.Other.Recover(w.ctx, name, 100, "upkeep")
			w.noError("recover", err)
		}
	}
}

// noError notes an error of a goroutine.
func (w *world) noError(verb string, err error) {
	if err != nil {
		w.Errorf("%s: %v", verb, err)
	}
}
