package storetest

import (
	"encoding/json"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/internal/storing"
)

func planRules() []Rule {
	return []Rule{
		{"R-240", "Settings that were changed by plain SQL are read as they are, and told once, with before and after, however many notice it.", "I-15, I-25", func(w *world) {
			w.save(func(s *sluice.Settings) { s.MaxAttempts = 4 })
			w.SetColumn("max_attempts", int64(6))
			w.SetColumn("lease_ms", int64(90_000))
			q := w.stored()
			equal(w, "max_attempts", q.Settings.MaxAttempts, 6)
			equal(w, "untold", q.Unrecorded(), true)
			var all sync.WaitGroup
			for n := range 6 {
				store := w.Store
				if n%2 == 1 {
					store = w.Other
				}
				all.Go(func() { _, _ = store.RecordQueueChange(w.ctx, q, storing.SQLAct()) })
			}
			all.Wait()
			equal(w, "untold", w.stored().Unrecorded(), false)
			equal(w, "version", w.stored().Version, q.Version+1)
			entries := w.changes()
			equal(w, "entries", len(entries), 2)
			equal(w, "actor", entries[0].Actor, "sql")
			before, after := settingsOf(w, entries[0].Before), settingsOf(w, entries[0].After)
			equal(w, "before", before.MaxAttempts, 4)
			equal(w, "after", after, w.stored().Settings)
			_, err := w.Store.RecordQueueChange(w.ctx, sluice.Queue{Name: "nobody's"}, storing.SQLAct())
			w.is(err, sluice.ErrConflict)
		}},
		{"R-241", "What plain SQL changed is told before the next change, if nobody has noticed it until then.", "I-15", func(w *world) {
			w.save(func(s *sluice.Settings) { s.MaxAttempts = 4 })
			w.SetColumn("max_attempts", int64(6))
			w.save(func(s *sluice.Settings) { s.MaxAttempts = 8 })
			entries := w.changes()
			equal(w, "entries", len(entries), 3)
			for i, want := range []struct {
				actor         string
				before, after int
			}{{"ada", 6, 8}, {"sql", 4, 6}} {
				equal(w, "actor", entries[i].Actor, want.actor)
				equal(w, "before", settingsOf(w, entries[i].Before).MaxAttempts, want.before)
				equal(w, "after", settingsOf(w, entries[i].After).MaxAttempts, want.after)
			}
			equal(w, "untold", w.stored().Unrecorded(), false)
		}},
		{"R-242", "A value that breaks a rule and that plain SQL got into the table does not count: the last good one does, with a warning, and the other settings and queues are read.", "I-15, I-20", func(w *world) {
			for column, c := range map[string]struct{ nonsense, good any }{
				"keep_dead_ms":   {int64(math.MaxInt64), int64(time.Hour / time.Millisecond)},
				"payload_schema": {"no JSON", ""},
			} {
				w.save(func(s *sluice.Settings) { s.KeepDead, s.MaxAttempts = time.Hour, 3 })
				w.SetColumn("max_attempts", int64(6))
				w.SetColumn(column, c.nonsense)
				q := w.stored()
				equal(w, "keep_dead", q.Settings.KeepDead, time.Hour)
				equal(w, "payload_schema", q.Settings.PayloadSchema, "")
				equal(w, "max_attempts", q.Settings.MaxAttempts, 6)
				if !strings.Contains(q.Wrong, strings.TrimSuffix(column, "_ms")) {
					w.Fatalf("the warning is %q, want one of %s", q.Wrong, column)
				}
				w.ok(ignore(w.Store.RecordQueueChange(w.ctx, q, storing.SQLAct())))
				if w.stored().Wrong == "" {
					w.Fatal("telling of the change hid the warning")
				}
				w.SetColumn(column, c.good)
				equal(w, "the warning", w.stored().Wrong, "")
				w.SetColumn(column, c.nonsense)
				w.save(func(*sluice.Settings) {})
				equal(w, "the warning after a change", w.stored().Wrong, "")
			}
		}},
		{"R-243", "Plans are stored together with the settings, named by the version that made them and counted from the store's clock.", "I-15", func(w *world) {
			w.save(func(s *sluice.Settings) { s.MaxAttempts = 4 })
			client := sluice.NewClient(w.Store, sluice.ClientOptions{})
			saved, err := changes.For(w.ctx, client, queue, 30*time.Minute, person("test"), func(s *sluice.Settings) error { s.MaxAttempts = 9; return nil })
			w.ok(err)
			window := changes.Window{From: "16:00", To: "18:00", Zone: "UTC", Days: []string{"mon"}}
			_, err = changes.Schedule(w.ctx, client, queue, window, map[string]string{"rate": "200/s"}, person("test"))
			w.ok(err)
			q := w.stored()
			plans := w.plans()
			equal(w, "plans", len(plans), 2)
			equal(w, "version", plans[0].ID, saved.Version)
			w.near("made at", plans[0].MadeAt, saved.ChangedAt)
			equal(w, "revert_at", plans[0].RevertAt, plans[0].MadeAt.Add(30*time.Minute))
			equal(w, "swap", plans[0].Swaps["max_attempts"], changes.Swap{Before: "4", After: "9"})
			equal(w, "made by", plans[0].MadeBy, "ada")
			equal(w, "window", plans[1].Window.String(), window.String())
			equal(w, "set", plans[1].Set["rate"], "200/s")
			told, err := changes.InAudit(w.changes()[0].After)
			w.ok(err)
			equal(w, "plans in the audit", len(told), 2)
			equal(w, "the name of the plan in the audit", told[1].ID, q.Version)
			w.save(func(s *sluice.Settings) { s.MaxAttempts = 5 })
			equal(w, "plans after another change", len(w.plans()), 2)
			for _, id := range []int64{plans[0].ID, plans[1].ID} {
				w.ok(ignore(changes.Cancel(w.ctx, client, queue, id, person("test"))))
			}
			equal(w, "plans", len(w.plans()), 0)
		}},
		{"R-244", "A queue comes with the store's clock.", "I-26", func(w *world) {
			w.save(func(*sluice.Settings) {})
			w.near("now", w.stored().Now, w.Now())
		}},
		{"R-245", "A claim with a lead gets jobs that much before they are due, with limits and without, and says when it may get the next.", "D-36, I-3", func(w *world) {
			for _, limit := range []int{0, 100} {
				w.save(func(s *sluice.Settings) { s.Concurrency = limit })
				late := w.add(sluice.EnqueueOptions{Delay: 50 * time.Minute})
				soon := w.add(sluice.EnqueueOptions{Delay: 20 * time.Minute})
				now := w.add(sluice.EnqueueOptions{})
				request := claimOf(1, 10)
				request.ClaimAhead = 30 * time.Minute
				jobs := w.claimAs(w.Store, request)
				equal(w, "jobs", len(jobs), 2)
				equal(w, "the first", jobs[0].ID, now)
				equal(w, "the second", jobs[1].ID, soon)
				w.near("due", jobs[1].DueAt, jobs[1].ClaimedAt.Add(20*time.Minute))
				w.claimNone("nothing else is due")
				request.Token = sluice.NewToken()
				claimed, err := w.Other.Claim(w.ctx, request)
				w.ok(err)
				equal(w, "jobs", len(claimed.Jobs), 0)
				if claimed.NextDue > 20*time.Minute || claimed.NextDue < 0 {
					w.Fatalf("the next one may be claimed in %s, want at most 20m", claimed.NextDue)
				}
				w.Advance(21 * time.Minute)
				request.Token = sluice.NewToken()
				jobs = append(jobs, w.claimAs(w.Store, request)...)
				equal(w, "jobs", len(jobs), 3)
				equal(w, "the third", jobs[2].ID, late)
				for _, c := range jobs {
					w.done(by(sluice.EventComplete, c))
				}
			}
		}},
		{"R-246", "A job that was claimed before it was due and is released waits until it is due, as before.", "I-3", func(w *world) {
			id := w.add(sluice.EnqueueOptions{Delay: 20 * time.Minute})
			due := w.job(id).DueAt
			request := claimOf(1, 10)
			request.ClaimAhead = 30 * time.Minute
			jobs := w.claimAs(w.Store, request)
			equal(w, "jobs", len(jobs), 1)
			w.done(by(sluice.EventRelease, jobs[0]))
			equal(w, "due", w.job(id).DueAt, due)
			w.claimNone("it is not due")
			w.Advance(21 * time.Minute)
			equal(w, "when it is due", w.claimOne().ID, id)
		}},
		{"R-247", "A job that will have expired when it is due is not claimed before that.", "I-3", func(w *world) {
			w.add(sluice.EnqueueOptions{ExpiresAt: w.Now().Add(10 * time.Minute)})
			later := by(sluice.EventRelease, w.claimOne())
			later.Delay = 20 * time.Minute
			w.done(later)
			request := claimOf(1, 10)
			request.ClaimAhead = 30 * time.Minute
			equal(w, "jobs", len(w.claimAs(w.Store, request)), 0)
		}},
		{"R-248", "What falls due while jobs that are due later have been claimed already is claimed in its time.", "I-1, I-11", func(w *world) {
			for range 3 {
				w.add(sluice.EnqueueOptions{Delay: 20 * time.Minute})
				request := claimOf(1, 10)
				request.ClaimAhead = 30 * time.Minute
				equal(w, "claimed ahead", len(w.claimAs(w.Store, request)), 1)
				_, err := w.Other.Enqueue(w.ctx, []sluice.Insert{insertOf(sluice.EnqueueOptions{}), insertOf(sluice.EnqueueOptions{Delay: time.Minute})})
				w.ok(err)
				equal(w, "what is due", len(w.claim(10)), 1)
				request.Token = sluice.NewToken()
				equal(w, "what is due before that", len(w.claimAs(w.Store, request)), 1)
			}
		}},
		{"R-249", "A rate counts claims: a job that is claimed before it is due takes its token then.", "I-12", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Rate, s.Burst = sluice.RatePerSecond(0.01), 3 })
			for range 5 {
				w.add(sluice.EnqueueOptions{Delay: 20 * time.Minute})
			}
			request := claimOf(1, 10)
			request.ClaimAhead = 30 * time.Minute
			claimed, err := w.Store.Claim(w.ctx, request)
			w.ok(err)
			equal(w, "jobs", len(claimed.Jobs), 3)
			equal(w, "limited", claimed.Limited, true)
		}},
	}
}

// ignore gives the error alone.
func ignore[T any](_ T, err error) error { return err }

// plans returns the plans of the usual queue.
func (w *world) plans() []changes.Change {
	w.Helper()
	plans, err := changes.List(w.stored())
	w.ok(err)
	return plans
}

// stored looks the usual queue up.
func (w *world) stored() sluice.Queue {
	w.Helper()
	queues, err := w.Other.Queues(w.ctx, sluice.QueueFilter{})
	w.ok(err)
	for _, q := range queues {
		if q.Name == queue {
			return q
		}
	}
	w.Fatal("the queue is not stored")
	return sluice.Queue{}
}

// changes lists what was told of the usual queue, the newest first.
func (w *world) changes() []sluice.AuditEntry {
	w.Helper()
	entries, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectQueue, Name: queue, Limit: 100})
	w.ok(err)
	return entries
}

func settingsOf(w *world, text json.RawMessage) sluice.Settings {
	w.Helper()
	settings := sluice.DefaultSettings()
	w.ok(json.Unmarshal(text, &settings))
	return settings
}
