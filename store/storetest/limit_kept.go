package storetest

import (
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/schedule"
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
	}
}

func undoneAnyhow(w *world) {
	w.share(limit.Limit{Name: "bank", Concurrency: 3}, "bank")
	w.saveLimit("bank", func(l *limit.Limit) { l.Concurrency = 9 })
	daily := w.schedule("daily", schedule.Definition{Queue: refunds, Every: 24 * time.Hour})
	daily.Definition.Every = 48 * time.Hour
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
	equal(w, "interval", again.Definition.Every, 24*time.Hour)

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
