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
