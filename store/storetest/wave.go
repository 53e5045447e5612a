package storetest

import (
	"maps"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forecast"
)

func waveRules() []Rule {
	return []Rule{
		{"R-260", "A count of waves tells how many jobs fall due in each minute, by queue; one that nobody counted is missing.", "I-19", func(w *world) {
			empty := w.waves(forecast.Filter{})
			equal(w, "queues before a count", len(empty.Queues), 0)
			w.near("now", empty.Now, w.Now())
			first, second := w.Now().Add(10*time.Minute), w.Now().Add(90*time.Minute)
			for i, at := range []time.Time{first, second, second, first, first} {
				insert := insertOf(sluice.EnqueueOptions{DueAt: at})
				if i == 4 {
					insert.Queue = "mail"
				}
				w.receipts(insert)
			}
			w.add(sluice.EnqueueOptions{})
			count := w.count()
			equal(w, "jobs", count.Jobs, 6)
			w.near("counted at", count.At, w.Now())
			q := w.queueWaves(queue)
			equal(w, "due", q.Due.Jobs, 1)
			w.ahead(q, map[time.Time]int{first: 2, second: 2})
			w.near("counted at", q.CountedAt, w.Now())
			w.ahead(w.queueWaves("mail"), map[time.Time]int{first: 1})
		}},
		{"R-261", "A count is that of its instant: what changes afterwards counts from the next one on, in every process.", "I-25", func(w *world) {
			w.add(sluice.EnqueueOptions{Delay: time.Hour})
			first := w.count()
			w.add(sluice.EnqueueOptions{Delay: time.Hour})
			q := w.queueWaves(queue)
			equal(w, "jobs of the first count", total(q), 1)
			equal(w, "its instant", q.CountedAt.Equal(first.At.Truncate(time.Microsecond)), true)
			second, err := forecast.Given(w.Other).CountWaves(w.ctx)
			w.ok(err)
			q = w.queueWaves(queue)
			equal(w, "jobs of the second count", total(q), 2)
			equal(w, "its instant", q.CountedAt.Equal(second.At.Truncate(time.Microsecond)), true)
			w.Advance(2 * time.Hour)
			w.count()
			q = w.queueWaves(queue)
			equal(w, "due when the time has come", q.Due.Jobs, 2)
			equal(w, "ahead", len(q.Ahead), 0)
		}},
		{"R-1111", "A count from before the clock was set back is stale, and the next one takes its place.", "I-26", func(w *world) {
			w.add(sluice.EnqueueOptions{Delay: time.Hour})
			w.count()
			w.Advance(-2 * time.Hour)
			equal(w, "stale", w.queueWaves(queue).Stale(w.waves(forecast.Filter{}).Now), true)
			w.add(sluice.EnqueueOptions{Delay: time.Hour})
			w.count()
			q := w.queueWaves(queue)
			equal(w, "jobs of the second count", total(q), 2)
			w.near("counted at", q.CountedAt, w.Now())
			equal(w, "stale then", q.Stale(w.waves(forecast.Filter{}).Now), false)
		}},
		{"R-262", "Jobs that are claimed or dispatched are counted as in flight, and jobs that ended not at all.", "I-1", func(w *world) {
			w.save(func(*sluice.Settings) {})
			w.addMany(5)
			jobs := w.claim(4)
			w.done(by(sluice.EventDispatch, jobs[0]))
			w.done(by(sluice.EventComplete, jobs[1]))
			w.done(by(sluice.EventBury, jobs[2]))
			w.count()
			q := w.queueWaves(queue)
			equal(w, "due", q.Due.Jobs, 1)
			equal(w, "in flight", q.InFlight.Jobs, 2)
			w.done(by(sluice.EventComplete, jobs[0]))
			w.done(by(sluice.EventComplete, jobs[3]))
			w.done(by(sluice.EventComplete, w.claimOne()))
			equal(w, "jobs when all have ended", w.count().Jobs, 0)
			equal(w, "of the queue", total(w.queueWaves(queue)), 0)
		}},
		{"R-263", "A job that was rescheduled, retried or released is counted where it is due now; a cancelled one leaves, a requeued one comes back.", "I-4", func(w *world) {
			w.save(func(*sluice.Settings) {})
			id := w.add(sluice.EnqueueOptions{Delay: time.Hour})
			moved := w.Now().Add(3 * time.Hour)
			w.ok(w.only(w.Store.Reschedule(w.ctx, []sluice.ID{id}, moved, person("test"))))
			w.count()
			w.ahead(w.queueWaves(queue), map[time.Time]int{moved: 1})
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{id}, person("test"))))
			equal(w, "jobs when it is cancelled", w.count().Jobs, 0)
			equal(w, "rows", len(w.queueWaves(queue).Ahead), 0)
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("test"))))
			w.count()
			equal(w, "due when it is requeued", w.queueWaves(queue).Due.Jobs, 1)
			for _, event := range []sluice.Event{sluice.EventRetry, sluice.EventRelease} {
				w.ok(w.only(w.Store.Reschedule(w.ctx, []sluice.ID{id}, time.Time{}, person("test"))))
				back := by(event, w.claimOne())
				back.Delay = 2 * time.Hour
				w.done(back)
				w.count()
				w.ahead(w.queueWaves(queue), map[time.Time]int{w.job(id).DueAt: 1})
			}
		}},
		{"R-264", "A blocked job is told apart, whenever it is due, until its blocker has ended.", "I-7", func(w *world) {
			w.add(sluice.EnqueueOptions{Key: "order-1"})
			first := w.claimOne()
			w.add(sluice.EnqueueOptions{Key: "order-1", OnDuplicate: sluice.Coalesce, Delay: time.Hour})
			w.count()
			q := w.queueWaves(queue)
			equal(w, "blocked", q.Blocked.Jobs, 1)
			equal(w, "ahead", len(q.Ahead), 0)
			equal(w, "in flight", q.InFlight.Jobs, 1)
			w.done(by(sluice.EventComplete, first))
			w.count()
			q = w.queueWaves(queue)
			equal(w, "blocked when its blocker has ended", q.Blocked.Jobs, 0)
			equal(w, "ahead", len(q.Ahead), 1)
		}},
		{"R-265", "The largest tenants of a queue are counted by name where that is asked for; the others are what is missing.", "I-19", func(w *world) {
			due := w.Now().Add(30 * time.Minute)
			w.addTenants(due)
			w.count()
			equal(w, "tenants that nobody asked for", len(w.queueWaves(queue).Ahead[0].Tenants), 0)
			found, err := forecast.Given(w.Store).Waves(w.ctx, forecast.Filter{Queue: queue, Tenants: true})
			w.ok(err)
			wave := found.Queues[0].Ahead[0]
			equal(w, "jobs", wave.Jobs, 5+3+forecast.MaxTenants)
			equal(w, "tenants by name", len(wave.Tenants), forecast.MaxTenants)
			equal(w, "of the largest", wave.Tenants["acme"], 5)
			equal(w, "without a tenant", wave.Tenants[""], 3)
			named := 0
			for jobs := range maps.Values(wave.Tenants) {
				named += jobs
			}
			equal(w, "others", wave.Jobs-named, 2)
			equal(w, "due", found.Queues[0].Due.Tenants["acme"], 1)
		}},
		{"R-266", "Jobs of the next day are counted by the minute, those of the week by the hour, later ones in one figure; what the filter leaves out is among the later ones.", "I-19", func(w *world) {
			soon, week := w.Now().Add(20*time.Hour), w.Now().Add(3*24*time.Hour)
			for _, at := range []time.Time{soon, week, week.Add(time.Millisecond), w.Now().Add(30 * 24 * time.Hour)} {
				w.add(sluice.EnqueueOptions{DueAt: at})
			}
			w.count()
			q := w.queueWaves(queue)
			equal(w, "waves", len(q.Ahead), 2)
			equal(w, "of a minute", q.Ahead[0].Span, time.Minute)
			equal(w, "at the minute", q.Ahead[0].At.Equal(soon.Truncate(time.Minute)), true)
			equal(w, "of an hour", q.Ahead[1].Span, time.Hour)
			equal(w, "at the hour", q.Ahead[1].At.Equal(week.Truncate(time.Hour)), true)
			equal(w, "jobs of the hour", q.Ahead[1].Jobs, 2)
			equal(w, "later", q.Later.Jobs, 1)
			near, err := forecast.Given(w.Store).Waves(w.ctx, forecast.Filter{Queue: queue, Ahead: time.Hour})
			w.ok(err)
			equal(w, "waves within the hour", len(near.Queues[0].Ahead), 0)
			equal(w, "after it", near.Queues[0].Later.Jobs, 4)
		}},
		{"R-267", "How long a job runs is the mean of those that finished lately, by queue, and not known before one has.", "I-19", func(w *world) {
			w.add(sluice.EnqueueOptions{})
			w.count()
			equal(w, "runs before any", w.queueWaves(queue).Runs, 0)
			c := w.claimOne()
			w.Advance(20 * time.Second)
			w.done(by(sluice.EventComplete, c))
			q := w.queueWaves(queue)
			equal(w, "runs", q.Runs, 1)
			if q.RunTime < 19*time.Second || q.RunTime > 30*time.Second {
				w.Fatalf("a job runs for %s, want about 20s", q.RunTime)
			}
		}},
		{"R-268", "A queue that holds no jobs is counted too, with nothing in it.", "I-19", func(w *world) {
			w.save(func(*sluice.Settings) {})
			w.count()
			q := w.queueWaves(queue)
			equal(w, "jobs", total(q), 0)
			w.near("counted at", q.CountedAt, w.Now())
			none, err := forecast.Given(w.Store).Waves(w.ctx, forecast.Filter{Queue: "nobody"})
			w.ok(err)
			equal(w, "queues that are not there", len(none.Queues), 0)
		}},
		{"R-269", "Counting beside enqueues and claims counts no job twice, and disturbs nobody.", "I-1", func(w *world) {
			const jobs, holders = 300, 3
			w.addMany(jobs)
			end := make(chan struct{})
			for n := range holders {
				go func() {
					defer func() { end <- struct{}{} }()
					for len(w.claimAndRelease(n)) > 0 {
					}
				}()
			}
			for running := holders; running > 0; {
				select {
				case <-end:
					running--
				default:
					if got := w.count().Jobs; got > jobs {
						w.Errorf("counted %d jobs of %d", got, jobs)
					}
				}
			}
			w.count()
			equal(w, "in the end", total(w.queueWaves(queue)), jobs)
		}},
	}
}

// count counts waves.
func (w *world) count() forecast.Count {
	w.Helper()
	count, err := forecast.Given(w.Store).CountWaves(w.ctx)
	w.ok(err)
	return count
}

func (w *world) waves(filter forecast.Filter) forecast.Counts {
	w.Helper()
	found, err := forecast.Given(w.Other).Waves(w.ctx, filter)
	w.ok(err)
	return found
}

// queueWaves is what was counted in one queue.
func (w *world) queueWaves(name string) forecast.QueueCounts {
	w.Helper()
	for _, q := range w.waves(forecast.Filter{}).Queues {
		if q.Queue == name {
			return q
		}
	}
	w.Fatalf("queue %q was not counted", name)
	return forecast.QueueCounts{}
}

// ahead makes sure of the minutes in which jobs fall due.
func (w *world) ahead(q forecast.QueueCounts, want map[time.Time]int) {
	w.Helper()
	minutes := make(map[time.Time]int)
	for at, jobs := range want {
		minutes[at.UTC().Truncate(time.Minute)] += jobs
	}
	equal(w, "waves of "+q.Queue, len(q.Ahead), len(minutes))
	for i, wave := range q.Ahead {
		equal(w, "jobs due at "+wave.At.Format(time.RFC3339), wave.Jobs, minutes[wave.At])
		if i > 0 && !wave.At.After(q.Ahead[i-1].At) {
			w.Fatalf("%s comes after %s", wave.At, q.Ahead[i-1].At)
		}
	}
}

// total is all that was counted in a queue.
func total(q forecast.QueueCounts) int {
	sum := q.Due.Jobs + q.InFlight.Jobs + q.Blocked.Jobs + q.Later.Jobs
	for _, wave := range q.Ahead {
		sum += wave.Jobs
	}
	return sum
}

// addTenants enqueues jobs of two tenants more than are counted by name: five of acme, three without a
// tenant, and one of each other. One more of acme is due.
func (w *world) addTenants(due time.Time) {
	w.Helper()
	var inserts []sluice.Insert
	add := func(tenant string, jobs int, due time.Time) {
		for range jobs {
			inserts = append(inserts, insertOf(sluice.EnqueueOptions{Tenant: tenant, DueAt: due}))
		}
	}
	add("acme", 1, time.Time{})
	add("acme", 5, due)
	add("", 3, due)
	for n := range forecast.MaxTenants {
		add("tenant \"x\" "+strconv.Itoa(n), 1, due)
	}
	w.receipts(inserts...)
}

// claimAndRelease claims some jobs and hands them back for later.
func (w *world) claimAndRelease(n int) []*sluice.Claim {
	claimed, err := w.Store.Claim(w.ctx, claimOf(n, 10))
	if err != nil {
		w.Errorf("claim: %v", err)
		return nil
	}
	settlements := make([]sluice.Settlement, len(claimed.Jobs))
	for i, c := range claimed.Jobs {
		settlements[i] = by(sluice.EventRelease, c)
		settlements[i].Delay = time.Hour
	}
	if _, err := w.Store.Settle(w.ctx, settlements); err != nil {
		w.Errorf("settle: %v", err)
	}
	return claimed.Jobs
}
