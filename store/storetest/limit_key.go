package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/edit"
	"github.com/sluice-queue/sluice/limit"
)

// limitKeyRules are those of limits that are per key.
func limitKeyRules() []Rule {
	return slices.Concat(keyConcurrencyRules(), keyRateRules(), laneRules(), lookedForRules(), overtakingRules(), aheadRules(), parkedRules(), keyStoreRules(), costRules(), limitReplayRules(), limitedRunRules(), keptLimitRules())
}

func keyConcurrencyRules() []Rule {
	return []Rule{
		{"R-844", "Lookups, lists and claims bring the limit key of a job, whether it is stored alone, among others, with a key, in an order, or requeued.", "C-35", func(w *world) {
			var batch []sluice.Insert
			for n, o := range []sluice.EnqueueOptions{{}, {LimitKey: "a.example"}, {LimitKey: "b.example", Key: "k"}, {LimitKey: "ü", OrderKey: "o", Tenant: "acme"}, {LimitKey: "a.example", Delay: time.Millisecond}} {
				o.ID = idOf(n + 1)
				batch = append(batch, insertOf(o))
				o.ID, o.Key, o.OrderKey = idOf(n+100), "", ""
				equal(w, "of a job stored alone", w.job(w.add(o)).LimitKey, o.LimitKey)
			}
			w.receipts(batch...)
			w.Advance(time.Second)
			page, err := w.Store.Jobs(w.ctx, sluice.JobFilter{Queue: queue, Limit: 100})
			w.ok(err)
			listed := make(map[sluice.ID]string)
			for _, j := range page.Jobs {
				listed[j.ID] = j.LimitKey
			}
			claims := w.claim(20)
			equal(w, "claimed", len(claims), 10)
			for _, c := range claims {
				equal(w, "in the list and in the claim", listed[c.ID], c.LimitKey)
				w.done(by(sluice.EventBury, c))
				w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{c.ID}, person("again"))))
				equal(w, "requeued", w.job(c.ID).LimitKey, c.LimitKey)
			}
		}},
		{"R-845", "A limit per key bounds each limit key apart over all queues that share it, and no job without one; every way out of flight makes room.", "I-10, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 2, PerKey: true}, "host")
			for range 5 {
				w.addKeyed(queue, "a", "b", "")
				w.addKeyed(refunds, "a", "b", "")
			}
			first := w.claimOnce(3)
			equal(w, "of the one queue", keysIn(first.Jobs), ":1 a:1 b:1")
			both := w.claimShared(30)
			equal(w, "of the other", keysIn(both.Jobs), ":5 a:1 b:1")
			equal(w, "a job has to end first", both.Full, true)
			equal(w, "more of the one", keysIn(w.claimOnce(30).Jobs), ":4")
			flying := keyedIn(first.Jobs, "a")
			w.done(by(sluice.EventDispatch, flying))
			equal(w, "beside a dispatched one", keysIn(w.claimShared(30).Jobs), "")
			for _, event := range []sluice.Event{sluice.EventComplete, sluice.EventRetry, sluice.EventRelease, sluice.EventBury} {
				w.done(by(event, flying))
				next := w.claimShared(30)
				if len(next.Jobs) == 0 {
					next = w.claimOnce(30)
				}
				equal(w, "after a "+string(event), keysIn(next.Jobs), "a:1")
				flying = next.Jobs[0]
			}
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{flying.ID}, person("test"))))
			equal(w, "after a cancel", keysIn(slices.Concat(w.claimOnce(30).Jobs, w.claimShared(30).Jobs)), "a:1")
			w.Advance(time.Hour)
			w.recover()
			equal(w, "after a recovery in the one queue", keysIn(w.claimOnce(30).Jobs), ":5 a:1 b:1")
		}},
		{"R-846", "Jobs that wait for their limit key hold back no others, and get in by priority, then by due time.", "I-10, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 1, PerKey: true}, "host")
			late := w.add(sluice.EnqueueOptions{LimitKey: "a", Priority: 7})
			w.addKeyed(queue, slices.Repeat([]string{"a"}, 30)...)
			running := w.claimOnce(1).Jobs[0]
			other := w.add(sluice.EnqueueOptions{LimitKey: "b", Priority: 9})
			equal(w, "behind thirty that wait", w.claimOnce(1).Jobs[0].ID, other)
			urgent := w.add(sluice.EnqueueOptions{LimitKey: "a", Priority: 2})
			equal(w, "while the key is full", len(w.claimOnce(5).Jobs), 0)
			w.done(by(sluice.EventComplete, running))
			running = w.claimOnce(5).Jobs[0]
			equal(w, "the most urgent", running.ID, urgent)
			for range 30 {
				equal(w, "the least urgent comes last", running.ID == late, false)
				w.done(by(sluice.EventComplete, running))
				next := w.claimOnce(5).Jobs
				equal(w, "one by one", len(next), 1)
				running = next[0]
			}
			equal(w, "the last", running.ID, late)
		}},
		{"R-847", "With many holders in two processes and two queues, in flight of no key ever exceeds the limit, and every job gets its turn.", "I-10, I-11, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 2, PerKey: true}, "host")
			var ids []sluice.ID
			for range 12 {
				ids = append(ids, w.addKeyed(queue, "a", "b", "c")...)
				ids = append(ids, w.addKeyed(refunds, "a", "b", "c")...)
			}
			use := keyedUse{inFlight: make(map[string]int)}
			var holders sync.WaitGroup
			for n := range 6 {
				holders.Go(func() { w.workKeyed(n, 2, &use) })
			}
			holders.Wait()
			for _, id := range ids {
				w.inState(id, sluice.StateCompleted)
			}
		}},
		{"R-848", "A queue's own limits, those of its tenants and those of limit keys all hold, and every job gets its turn.", "I-10, I-12, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 1, PerKey: true}, "host")
			w.save(func(s *sluice.Settings) { s.TenantConcurrency, s.Concurrency = 2, 3 })
			jobs := 0
			for _, tenant := range []string{"acme", "globex"} {
				for _, key := range []string{"a", "a", "b", "b", "c", ""} {
					w.add(sluice.EnqueueOptions{Tenant: tenant, LimitKey: key})
					jobs++
				}
			}
			for jobs > 0 {
				var claimed []*sluice.Claim
				for range 4 {
					claimed = append(claimed, w.claimOnce(10).Jobs...)
				}
				keys, tenants := make(map[string]int), make(map[string]int)
				for _, c := range claimed {
					tenants[c.Tenant]++
					keys[c.LimitKey]++
					if keys[c.LimitKey] > 1 && c.LimitKey != "" || tenants[c.Tenant] > 2 {
						w.Fatalf("in flight are %v of keys and %v of tenants", keys, tenants)
					}
				}
				if len(claimed) == 0 || len(claimed) > 3 {
					w.Fatalf("%d were claimed together, %d are left", len(claimed), jobs)
				}
				for _, c := range claimed {
					w.done(by(sluice.EventComplete, c))
				}
				jobs -= len(claimed)
				w.Advance(2 * time.Second)
			}
		}},
	}
}

func keyRateRules() []Rule {
	return []Rule{
		{"R-849", "The rate of a limit per key counts the claims of each key apart, and a claim says when there will be more.", "I-12, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Rate: sluice.Rate{Jobs: 1, Per: time.Hour}, Burst: 3, PerKey: true}, "host")
			for range 5 {
				w.addKeyed(queue, "a", "b")
			}
			claimed := w.claimOnce(20)
			equal(w, "of the bursts", keysIn(claimed.Jobs), "a:3 b:3")
			if claimed.NextDue <= 50*time.Minute || claimed.NextDue > time.Hour {
				w.Fatalf("the next start in %s, want about 1h", claimed.NextDue)
			}
			w.Advance(time.Hour + time.Second)
			equal(w, "an hour later", keysIn(w.claimOnce(20).Jobs), "a:1 b:1")
			equal(w, "at once", len(w.claimOnce(20).Jobs), 0)
		}},
		{"R-1045", "A claim that sets jobs of a limit key aside, and looks on, gives no more of them than the rate of the key allows; nor does it where tenants take turns.", "I-12, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Rate: sluice.Rate{Jobs: 1, Per: time.Hour}, PerKey: true}, "host")
			w.addKeyed(queue, "a", "a", "a", "a", "b", "b")
			equal(w, "of each key", keysIn(w.claimOnce(2).Jobs), "a:1 b:1")
			w.Advance(time.Hour + time.Second)
			equal(w, "an hour later", keysIn(w.claimOnce(3).Jobs), "a:1 b:1")
			w.Advance(time.Hour + time.Second)
			w.save(func(s *sluice.Settings) { s.Fair = true })
			for n := range 12 {
				w.add(sluice.EnqueueOptions{Tenant: fmt.Sprint("tenant-", n), LimitKey: "a"})
			}
			equal(w, "of many tenants", keysIn(w.claimOnce(3).Jobs), "a:1")
		}},
		{"R-850", "A closed key gives no job; it opens by itself, and a claim says when, or by a person. Other keys go on, and the audit tells of both.", "I-13, I-22, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Rate: sluice.Rate{Jobs: 1, Per: time.Hour}, Burst: 6, PerKey: true}, "host")
			w.saveLimit("bank", func(*limit.Limit) {})
			for range 6 {
				w.addKeyed(queue, "a", "b")
			}
			w.is(limit.CloseKey(w.ctx, w.Store, "unknown", "a", time.Hour, person("429")), sluice.ErrNotFound)
			w.is(limit.CloseKey(w.ctx, w.Store, "bank", "a", time.Hour, person("429")), sluice.ErrNotAllowed)
			w.is(limit.CloseKey(w.ctx, w.Store, "host", "", time.Hour, person("429")), sluice.ErrInvalid)
			w.ok(limit.CloseKey(w.ctx, w.Store, "host", "a", time.Hour, person("429")))
			w.ok(limit.CloseKey(w.ctx, w.Store, "host", "a", time.Minute, person("429"))) // it is closed for longer
			claimed := w.claimOnce(8)
			equal(w, "of the open key", keysIn(claimed.Jobs), "b:6")
			if wait := w.claimOnce(8).NextDue; wait < 59*time.Minute || wait > 61*time.Minute {
				w.Fatalf("it opens in %s, want 1h", wait)
			}
			w.Advance(61 * time.Minute)
			equal(w, "when it has opened", keysIn(w.claimOnce(2).Jobs), "a:2")
			w.ok(limit.CloseKey(w.ctx, w.Other, "host", "a", time.Hour, person("429")))
			equal(w, "closed again", len(w.claimOnce(8).Jobs), 0)
			w.ok(limit.OpenKey(w.ctx, w.Other, "host", "a", person("it answers")))
			equal(w, "when a person has opened it", keysIn(w.claimOnce(8).Jobs), "a:4")
			entries, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectLimit, Name: "host", Limit: 10})
			w.ok(err)
			told := make([]string, len(entries))
			for i, e := range entries {
				told[i] = string(e.Event)
			}
			equal(w, "audit", strings.Join(told, ", "), "open key, close key, close key, change")
			equal(w, "the key", strings.Contains(string(entries[1].After), `"a"`), true)
		}},
	}
}

func parkedRules() []Rule {
	return []Rule{
		{"R-851", "A changed limit per key, and a changed setting, count from the next claim on; without the limit, jobs that waited for it run.", "I-15, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 1, PerKey: true}, "host")
			w.addKeyed(queue, slices.Repeat([]string{"a"}, 20)...)
			equal(w, "by the limit", len(w.claimOnce(20).Jobs), 1)
			w.saveLimit("host", func(l *limit.Limit) { l.Concurrency = 3 })
			equal(w, "raised", len(w.claimOnce(20).Jobs), 2)
			w.saveLimit("user", func(l *limit.Limit) { l.Concurrency, l.PerKey = 5, true })
			w.saveNamed(queue, func(s *sluice.Settings) { s.Limits = "user" })
			equal(w, "by another limit", len(w.claimOnce(20).Jobs), 2)
			w.saveLimit("user", func(l *limit.Limit) { l.Concurrency, l.PerKey = 7, false })
			equal(w, "not per key any more", w.claimedSoon(20), 2)
			w.saveNamed(queue, func(s *sluice.Settings) { s.Limits = "" })
			equal(w, "without limits", w.claimedSoon(20), 13)
		}},
		{"R-852", "A job that waits for its limit key can be cancelled, held, edited and expires; a release of its hold leaves it waiting.", "I-15, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 1, PerKey: true}, "host")
			ids := w.addKeyed(queue, "a", "a", "a", "a")
			soon := w.add(sluice.EnqueueOptions{LimitKey: "a", ExpiresAt: w.Now().Add(time.Hour)})
			running := w.claimOnce(9).Jobs[0]
			equal(w, "the first", running.ID, ids[0])
			w.ok(w.only(w.Store.Cancel(w.ctx, ids[1:2], person("not needed"))))
			w.hold(person("looks odd"), ids[2])
			w.ok(w.edit(w.job(ids[3]), edit.Change{Priority: 9}, person("later")))
			w.done(by(sluice.EventComplete, running))
			next := w.claimOnce(9).Jobs
			equal(w, "the next that nobody holds", next[0].ID, soon)
			w.release(person("it is fine"), ids[2])
			equal(w, "released, beside one in flight", len(w.claimOnce(9).Jobs), 0)
			w.done(by(sluice.EventComplete, next[0]))
			next = w.claimOnce(9).Jobs
			equal(w, "the released one", next[0].ID, ids[2])
			w.ok(w.only(w.Store.Reschedule(w.ctx, ids[3:4], w.Now().Add(time.Hour), person("later"))))
			w.done(by(sluice.EventComplete, next[0]))
			equal(w, "put off", len(w.claimOnce(9).Jobs), 0)
			w.Advance(61 * time.Minute)
			equal(w, "when it is due", len(w.claimOnce(9).Jobs), 1)
			expires := w.add(sluice.EnqueueOptions{LimitKey: "a", ExpiresAt: w.Now().Add(time.Hour)})
			equal(w, "beside one in flight", len(w.claimOnce(9).Jobs), 0)
			w.Advance(61 * time.Minute)
			_, err := w.Store.Expire(w.ctx, 10, "upkeep")
			w.ok(err)
			w.inState(expires, sluice.StateCancelled)
		}},
		{"R-853", "Jobs that wait for their limit key stay in their order, and one that was retried waits like a new one.", "I-10, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 1, PerKey: true}, "host")
			w.addKeyed(queue, "a")
			running := w.claimOnce(9).Jobs[0]
			first := w.add(sluice.EnqueueOptions{LimitKey: "a", OrderKey: "o"})
			second := w.add(sluice.EnqueueOptions{LimitKey: "b", OrderKey: "o"})
			equal(w, "while the key is full", len(w.claimOnce(9).Jobs), 0)
			third := w.add(sluice.EnqueueOptions{OrderKey: "o"})
			equal(w, "behind one that waits", len(w.claimOnce(9).Jobs), 0)
			w.repair(0)
			w.done(by(sluice.EventRetry, running))
			next := w.claimOnce(9).Jobs
			equal(w, "that was due first", next[0].ID, first)
			w.done(by(sluice.EventComplete, next[0]))
			both := w.findAll(second, running.ID)
			w.done(by(sluice.EventComplete, both[second]))
			w.findAll(third)
		}},
		{"R-971", "A job that waits for its limit key keeps its turn in its order: one of an earlier place that comes back waits for it.", "I-10, C-5, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 1, PerKey: true}, "host")
			w.addKeyed(queue, "a")
			running := w.claimOnce(9).Jobs[0]
			first, second := w.add(ordered("o")), w.add(sluice.EnqueueOptions{LimitKey: "a", OrderKey: "o"})
			w.done(by(sluice.EventBury, w.claims(first)[0]))
			equal(w, "while the key is full", len(w.claimOnce(9).Jobs), 0)
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{first}, person("mended"))))
			equal(w, "behind the one that waits for its key", len(w.claimOnce(9).Jobs), 0)
			equal(w, "blocked by", w.job(first).BlockedBy, second)
			w.done(by(sluice.EventComplete, running))
			w.finishes(second, first)
		}},
		{"R-974", "An expired job that waits for its limit key takes no room from those behind it.", "I-10, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 1, PerKey: true}, "host")
			w.addKeyed(queue, "a")
			running := w.claimOnce(9).Jobs[0]
			w.add(sluice.EnqueueOptions{LimitKey: "a", Priority: 1, ExpiresAt: w.Now().Add(time.Hour)})
			next := w.add(sluice.EnqueueOptions{LimitKey: "a"})
			equal(w, "while the key is full", len(w.claimOnce(9).Jobs), 0)
			w.done(by(sluice.EventComplete, running))
			w.Advance(61 * time.Minute)
			equal(w, "once it has room", w.claimOnce(9).Jobs[0].ID, next)
		}},
	}
}

func keyStoreRules() []Rule {
	return []Rule{
		{"R-854", "A store says how much of a limit per key each key uses, and lists the keys that are closed or have waiting jobs.", "I-22, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 1, Rate: sluice.Rate{Jobs: 1, Per: time.Minute}, PerKey: true}, "host")
			w.addKeyed(queue, "b", "b", "b", "a")
			w.addKeyed(refunds, "b")
			w.claimOnce(9)
			w.claimShared(9)
			w.ok(limit.CloseKey(w.ctx, w.Store, "host", "c", time.Hour, person("429")))
			uses, err := limit.KeyUses(w.ctx, w.Other, "host")
			w.ok(err)
			equal(w, "keys", len(uses), 2)
			equal(w, "that waits", fmt.Sprintln(uses[0].Key, uses[0].InFlight, uses[0].Waiting, uses[0].Wait > 0, uses[0].ClosedUntil.IsZero()), "b 1 3 true true\n")
			equal(w, "that is closed", fmt.Sprintln(uses[1].Key, uses[1].InFlight, uses[1].Waiting, uses[1].ClosedUntil.After(w.Now())), "c 0 0 true\n")
			uses, err = limit.KeyUses(w.ctx, w.Store, "host", "z", "a")
			w.ok(err)
			equal(w, "asked for", fmt.Sprintln(uses[0].Key, uses[0].InFlight, uses[1].Key, uses[1].InFlight), "z 0 a 1\n")
			uses, err = limit.KeyUses(w.ctx, w.Store, "unknown")
			w.ok(err)
			equal(w, "of an unknown limit", len(uses), 0)
		}},
		{"R-855", "Why says that a job waits for its limit key, and until when.", "I-22, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 1, PerKey: true}, "host")
			ids := w.addKeyed(queue, "a", "a", "b")
			equal(w, "claimed", len(w.claimOnce(9).Jobs), 2)
			equal(w, "full", fmt.Sprint(w.limitReasons(ids[1])), "[false]")
			w.ok(limit.CloseKey(w.ctx, w.Store, "host", "c", time.Hour, person("429")))
			equal(w, "closed", fmt.Sprint(w.limitReasons(w.addKeyed(queue, "c")[0])), "[false]")
			equal(w, "open", fmt.Sprint(w.limitReasons(w.addKeyed(queue, "d")[0])), "[true]")
			equal(w, "without a key", fmt.Sprint(w.limitReasons(w.addKeyed(queue, "")[0])), "[true]")
		}},
	}
}

// addKeyed enqueues a job for each limit key in a queue.
func (w *world) addKeyed(queue string, keys ...string) []sluice.ID {
	w.Helper()
	ids := make([]sluice.ID, len(keys))
	inserts := make([]sluice.Insert, len(keys))
	for i, key := range keys {
		inserts[i] = insertOf(sluice.EnqueueOptions{LimitKey: key})
		inserts[i].Queue, ids[i] = queue, inserts[i].ID
	}
	w.receipts(inserts...)
	return ids
}

// keysIn counts claimed jobs by limit key.
func keysIn(claimed []*sluice.Claim) string {
	counts := make(map[string]int)
	for _, c := range claimed {
		counts[c.LimitKey]++
	}
	var parts []string
	for key, n := range counts {
		parts = append(parts, fmt.Sprintf("%s:%d", key, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

func keyedIn(claimed []*sluice.Claim, key string) *sluice.Claim {
	return claimed[slices.IndexFunc(claimed, func(c *sluice.Claim) bool { return c.LimitKey == key })]
}

// claimedSoon claims until nothing more comes, with repairs in between, and counts.
func (w *world) claimedSoon(most int) (got int) {
	w.Helper()
	for range 3 {
		got += len(w.claimOnce(most).Jobs)
		_, err := w.Store.Repair(w.ctx, "upkeep")
		w.ok(err)
	}
	return got
}

// keyedUse counts jobs in flight by limit key.
type keyedUse struct {
	mu       sync.Mutex
	inFlight map[string]int
}

// add counts jobs, and returns a key of which too many are in flight.
func (u *keyedUse) add(claimed []*sluice.Claim, by, most int) (over string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range claimed {
		if u.inFlight[c.LimitKey] += by; u.inFlight[c.LimitKey] > most {
			over = c.LimitKey
		}
	}
	return over
}

// workKeyed claims from one of two queues and completes until nothing is unfinished there.
func (w *world) workKeyed(n, most int, use *keyedUse) {
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
		if over := use.add(claimed.Jobs, 1, most); over != "" {
			w.Errorf("more than %d of key %q are in flight", most, over)
			return
		}
		var settlements []sluice.Settlement
		for _, c := range claimed.Jobs {
			settlements = append(settlements, by(sluice.EventComplete, c))
		}
		use.add(claimed.Jobs, -1, most)
		if errs, err := store.Settle(w.ctx, settlements); err != nil || errors.Join(errs...) != nil {
			w.Errorf("settle: %v %v", err, errs)
			return
		}
		depth, err := store.Depth(w.ctx, own, sluice.DepthLimit)
		if err != nil || depth.Ready+depth.Blocked+depth.InFlight() == 0 {
			w.ok(err)
			return
		}
	}
}
