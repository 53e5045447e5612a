package storetest

import (
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/tenancy"
)

// keptLimitRules are about what stores keep of limits: their changes, closes and ends.
func keptLimitRules() []Rule {
	return []Rule{
		{"R-1190", "To undo finds the last change of a limit or a schedule behind any number of other entries in the audit, and none from before the thing was deleted.", "[limits](guide/limits.md)", undoneAnyhow},
		{"R-1191", "A close of a limit key shortens no longer close, also if another process made that one at the same moment, and the audit does not tell of it.", "[limits](guide/limits.md)", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 5, PerKey: true}, "host")
			long, short := w.Now().Add(time.Hour).Truncate(time.Second), w.Now().Add(time.Minute)
			for _, until := range []time.Time{long, short, long} {
				w.ok(limit.Given(w.Other).CloseKey(w.ctx, "host", "a", until, person("429")))
			}
			w.keyOpens("a", long)
			later := long.Add(time.Second)
			w.ok(limit.CloseKeyUntil(w.ctx, w.Store, "host", "a", later, person("429")))
			w.keyOpens("a", later)
			w.ok(limit.OpenKey(w.ctx, w.Store, "host", "a", person("it answers")))
			w.keyOpens("a", time.Time{})
			entries, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectLimit, Name: "host", Event: audit.EventCloseKey, Limit: 10})
			w.ok(err)
			equal(w, "closes in the audit", len(entries), 2)
		}},
		{"R-1192", "Upkeep ends the pause and the limits of a tenant whose time is over; then they do not make their queue serve its tenants in turns. The audit tells of it.", "[tenants](guide/tenants.md)", func(w *world) {
			w.save(func(*sluice.Settings) {})
			w.limit(tenancy.Limits{Queue: queue, Tenant: "acme", Paused: true, PausedUntil: w.Now().Add(10 * time.Minute)})
			w.limit(tenancy.Limits{Tenant: "globex", Concurrency: new(2), Until: w.Now().Add(20 * time.Minute), Paused: true, PausedUntil: w.Now().Add(5 * time.Minute)})
			w.addOf("acme", 2)
			w.addOf("globex", 3)
			equal(w, "of a paused tenant", w.claimAll()["acme"], 0)
			for _, step := range []struct {
				passes        time.Duration
				paused, turns bool
			}{{time.Minute, true, true}, {10 * time.Minute, false, true}, {10 * time.Minute, false, false}} {
				w.Advance(step.passes)
				_, err := w.Store.Repair(w.ctx, "upkeep")
				w.ok(err)
				equal(w, "whether the tenant is paused", w.limitsOf("acme").Paused, step.paused)
				equal(w, "whether the queue serves its tenants in turns", w.stored().ByTenant, step.turns)
			}
			left := w.limitsOf("globex")
			equal(w, "what the limits still say", left.Say() || !left.Until.IsZero() || !left.PausedUntil.IsZero(), false)
			got := w.claimAll()
			equal(w, "jobs claimed without limits", got["acme"]+got["globex"] >= 3, true)
			entries, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectTenant, Name: "acme", Limit: 1})
			w.ok(err)
			equal(w, "who ended the pause, and why", entries[0].Actor+": "+entries[0].Reason, "upkeep: their time is over")
		}},
		{"R-1193", "A full queue that sheds cancels jobs that wait for their limit key too, by the same order of priorities.", "[back-pressure](guide/back-pressure.md)", shedsParkedJobs},
		{"R-1194", "A full queue sheds nothing for a job whose key another job holds: that job is a duplicate.", "[back-pressure](guide/back-pressure.md), I-7", func(w *world) {
			keyed := func(rule sluice.OnDuplicate) sluice.Insert {
				in := insertOf(sluice.EnqueueOptions{Key: "k", Priority: 1, OnDuplicate: rule})
				in.MaxWaiting, in.Shed = 2, true
				return in
			}
			first, low := keyed(sluice.Keep), w.add(sluice.EnqueueOptions{Priority: 9})
			w.receipts(first)
			equal(w, "the receipt of a second job with the key", w.receipts(keyed(sluice.Keep))[0], sluice.Receipt{ID: first.ID, Duplicate: true})
			w.inState(low, sluice.StateQueued)
			w.noRoom(limited(func(in *sluice.Insert) { in.MaxWaiting, in.Priority = 2, 10 }))
			w.done(by(sluice.EventComplete, w.claimOne()))
			w.receipts(limited(func(in *sluice.Insert) { in.Priority = 8 }))
			w.receipts(keyed(sluice.Keep)) // the key is free
			w.inState(low, sluice.StateCancelled)
		}},
	}
}

func undoneAnyhow(w *world) {
	w.share(limit.Limit{Name: "bank", Concurrency: 3}, "bank")
	w.saveLimit("bank", func(l *limit.Limit) { l.Concurrency = 9 })
	daily := w.schedule("daily", schedule.Definition{Queue: refunds, Every: 24 * time.Hour})
	daily.Every = 48 * time.Hour
	_, err := schedule.Set(w.ctx, w.Store, "daily", daily.Definition, person("a slip"))
	w.ok(err)
	w.save(func(s *sluice.Settings) { s.Concurrency = 7 })
	var others []sluice.AuditEntry
	for range 130 {
		others = append(others,
			sluice.AuditEntry{Object: audit.ObjectLimit, Name: "bank", Event: "look", Actor: "ada"},
			sluice.AuditEntry{Object: audit.ObjectSchedule, Name: "daily", Event: "look", Actor: "ada"})
	}
	w.ok(w.Store.AppendAudit(w.ctx, others))
	undone, err := limit.Undo(w.ctx, w.Store, "bank", person("a slip"))
	w.ok(err)
	equal(w, "concurrency", undone.Concurrency, 3)
	again, err := schedule.Undo(w.ctx, w.Store, "daily", person("a slip"))
	w.ok(err)
	equal(w, "interval", again.Every, 24*time.Hour)

	w.ok(sluice.NewClient(w.Store, sluice.ClientOptions{}).DeleteQueue(w.ctx, queue, person("gone")))
	w.save(func(s *sluice.Settings) { s.Concurrency = 5 })
	_, err = changes.Undo(w.ctx, sluice.NewClient(w.Store, sluice.ClientOptions{}), queue, person("a slip"))
	w.is(err, sluice.ErrNotFound)
}

// keyOpens makes sure when a key of the limit host opens. Zero: it is open.
func (w *world) keyOpens(key string, want time.Time) {
	w.Helper()
	uses, err := limit.KeyUses(w.ctx, w.Store, "host", key)
	w.ok(err)
	equal(w, "when the key opens", uses[0].ClosedUntil.Equal(want), true)
}

// limitsOf reads the only limits of a tenant.
func (w *world) limitsOf(tenant string) tenancy.Limits {
	w.Helper()
	all, err := tenancy.LimitsOf(w.ctx, w.Other, "", tenant)
	w.ok(err)
	equal(w, "limits of the tenant", len(all), 1)
	return all[0]
}

func shedsParkedJobs(w *world) {
	w.share(limit.Limit{Name: "host", Concurrency: 1, PerKey: true}, "host")
	for _, turns := range []bool{false, true} {
		w.save(func(s *sluice.Settings) { s.Fair = turns })
		of := func(priority, most int, o sluice.EnqueueOptions) sluice.Insert {
			o.Priority, o.Tenant, o.LimitKey = priority, "acme", "a"
			in := insertOf(o)
			in.MaxWaiting, in.Shed, in.ByTenant = most, true, turns
			return in
		}
		running := of(1, 0, sluice.EnqueueOptions{})
		w.receipts(running)
		claims := w.claimOnce(1).Jobs
		equal(w, "running", len(claims), 1)
		lowest, ordered, low := of(9, 0, sluice.EnqueueOptions{Key: "k"}), of(10, 0, sluice.EnqueueOptions{OrderKey: "o"}), of(7, 0, sluice.EnqueueOptions{})
		w.receipts(lowest, ordered, low)
		equal(w, "beside the running one", len(w.claimOnce(5).Jobs), 0)
		w.noRoom(of(9, 3, sluice.EnqueueOptions{}))
		later := of(8, 3, sluice.EnqueueOptions{})
		w.receipts(later)
		w.inState(lowest.ID, sluice.StateCancelled)
		w.inState(low.ID, sluice.StateQueued)
		equal(w, "the key of the shed one is free", w.receipt(sluice.EnqueueOptions{Key: "k"}).Duplicate, false)
		for _, shed := range []sluice.ID{later.ID, low.ID} { // a full tenant
			if urgent := of(6, 0, sluice.EnqueueOptions{}); turns {
				urgent.TenantMaxWaiting = 3
				w.receipts(urgent)
				w.inState(shed, sluice.StateCancelled)
			}
		}
		w.inState(ordered.ID, sluice.StateQueued)
		w.empty()
		w.inState(claims[0].ID, sluice.StateCancelled)
	}
}
