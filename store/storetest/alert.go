package storetest

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/health"
)

// deadRule is a rule as a person stores it.
func deadRule(queue string) alert.Rule {
	return alert.Rule{
		Name: "dead-letters", Queue: queue, Metric: alert.MetricDead, Op: ">", Threshold: 5.5, RateShare: 0.25, For: 90 * time.Second,
		Window: time.Hour, Severity: health.SeverityError, Covers: alert.CoversUnlimited, Summary: "they wait", Runbook: "look\nmend", Disabled: true,
	}
}

// firing is an alert that fires, and what is told of it.
func (w *world) firing(rule, queue string, version int64) (alert.Alert, alert.Message) {
	now := w.Now().UTC().Truncate(time.Microsecond)
	a := alert.Alert{
		Rule: rule, Queue: queue, State: alert.Firing, Since: now, PendingSince: now.Add(-time.Minute), FiredAt: now, Told: true, Value: 12.5,
		Threshold: 10, Severity: health.SeverityCritical, At: now, Detail: "the oldest is from Monday", Version: version,
	}
	return a, a.Message(alert.Rule{Name: rule, Metric: alert.MetricDead, Op: ">", Summary: "dead letters wait"}, alert.Fires, now)
}

// round is a look that has found alerts, each of which is told.
func (w *world) round(alerts ...alert.Alert) alert.Evaluation {
	out := alert.Evaluation{Alerts: alerts}
	for _, a := range alerts {
		m := a.Message(alert.Rule{Name: a.Rule, Metric: alert.MetricDead, Op: ">"}, alert.Fires, w.Now())
		out.Messages, out.Entries = append(out.Messages, m), append(out.Entries, m.Entry("upkeep"))
	}
	return out
}

func (w *world) book() alert.Book {
	w.Helper()
	book, err := alert.Given(w.Other).AlertBook(w.ctx)
	w.ok(err)
	return book
}

// alertTold lists what the audit tells of an alert, the newest first.
func (w *world) alertTold(name string) (events []sluice.Event) {
	w.Helper()
	entries, err := w.Other.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectAlert, Name: name, Limit: 100})
	w.ok(err)
	for _, e := range entries {
		events = append(events, e.Event)
	}
	return events
}

func alertRules() []Rule { return slices.Concat(alertBookRules(), notificationRules()) }

func alertBookRules() []Rule {
	return []Rule{
		{"R-340", "A rule of alerts is stored by its name and queue, with all that it says; a change needs the version that was read, and is audited with who and why.", "C-74", func(w *world) {
			for _, q := range []string{"", queue} {
				rule := deadRule(q)
				saved, err := alert.Given(w.Store).SaveAlertRule(w.ctx, rule, person("they pile up"))
				w.ok(err)
				equal(w, "version", saved.Version, 1)
				_, err = alert.Given(w.Other).SaveAlertRule(w.ctx, rule, person("late"))
				w.is(err, sluice.ErrConflict)
				saved.Threshold = 7
				saved, err = alert.Given(w.Other).SaveAlertRule(w.ctx, saved, person("more"))
				w.ok(err)
				w.near("changed at", saved.ChangedAt, w.Now())
				rule.Threshold, rule.Version, rule.ChangedAt, rule.ChangedBy, rule.Reason = 7, 2, saved.ChangedAt, "ada", "more"
				equal(w, "saved", saved, rule)
				book := w.book()
				equal(w, "stored", book.Rules[len(book.Rules)-1], saved)
				w.near("the clock", book.Now, w.Now())
			}
			stale := deadRule("")
			stale.Version = 7
			_, err := alert.Given(w.Store).SaveAlertRule(w.ctx, stale, person("stale"))
			w.is(err, sluice.ErrConflict)
			equal(w, "rules", len(w.book().Rules), 2)
			equal(w, "told", len(w.alertTold("dead-letters/"+queue)), 2)
		}},
		{"R-341", "A rule that is deleted is gone, that of a queue or that of all, once; one that is not stored is not found.", "C-74", func(w *world) {
			for _, q := range []string{"", queue} {
				_, err := alert.Given(w.Store).SaveAlertRule(w.ctx, deadRule(q), person("test"))
				w.ok(err)
			}
			w.ok(alert.Given(w.Store).DeleteAlertRule(w.ctx, "dead-letters", queue, person("enough")))
			w.is(alert.Given(w.Other).DeleteAlertRule(w.ctx, "dead-letters", queue, person("enough")), sluice.ErrNotFound)
			w.is(alert.Given(w.Store).DeleteAlertRule(w.ctx, "nobody", "", person("enough")), sluice.ErrNotFound)
			book := w.book()
			equal(w, "rules", len(book.Rules), 1)
			equal(w, "of", book.Rules[0].Queue, "")
			equal(w, "told", w.alertTold("dead-letters/" + queue)[0], audit.EventDelete)
		}},
		{"R-342", "Alerts are stored with all that is known of them, together with what the audit is told, so that another process goes on from there.", "C-74, I-25", func(w *world) {
			first, message := w.firing("dead-letters", queue, 0)
			second, _ := w.firing("clock", "", 0)
			second.State, second.FiredAt, second.Told, second.Detail = alert.Pending, time.Time{}, false, ""
			w.ok(alert.Given(w.Store).SaveAlerts(w.ctx, alert.Evaluation{
				Alerts: []alert.Alert{first, second}, Messages: []alert.Message{message}, Entries: []sluice.AuditEntry{message.Entry("upkeep")},
			}))
			first.Version, second.Version = 1, 1
			book := w.book()
			equal(w, "alerts", len(book.Alerts), 2)
			equal(w, "the second by name", book.Alerts[1], first)
			equal(w, "the first by name", book.Alerts[0], second)
			told, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectAlert, Name: "dead-letters/" + queue, Limit: 10})
			w.ok(err)
			equal(w, "entries", len(told), 1)
			equal(w, "event", told[0].Event, audit.EventAlertFires)
			if !strings.Contains(told[0].Reason, "dead letters wait") || told[0].Actor != "upkeep" {
				w.Fatalf("told %+v", told[0])
			}
		}},
		{"R-343", "Of two who store the same alert after the same look one is refused, and nothing of what it found is stored or told.", "I-25", func(w *world) {
			w.register("hook")
			a, _ := w.firing("dead-letters", queue, 0)
			other, _ := w.firing("clock", "", 0)
			var refused, stored sync.Map
			var all sync.WaitGroup
			for n, store := range []sluice.Store{w.Store, w.Other} {
				all.Go(func() {
					err := alert.Given(store).SaveAlerts(w.ctx, w.round(other, a))
					if err == nil {
						stored.Store(n, true)
					} else {
						refused.Store(n, err)
					}
				})
			}
			all.Wait()
			winners := 0
			stored.Range(func(_, _ any) bool { winners++; return true })
			refused.Range(func(_, err any) bool { w.is(err.(error), sluice.ErrConflict); return true })
			equal(w, "stored", winners, 1)
			a.Version = 1
			stale := other // the second of the round is stale
			w.is(alert.Given(w.Store).SaveAlerts(w.ctx, w.round(a, stale)), sluice.ErrConflict)
			equal(w, "version", w.book().Alerts[1].Version, 1)
			equal(w, "told", len(w.take("hook")), 2)
			equal(w, "audited", len(w.alertTold("dead-letters/"+queue)), 1)
		}},
		{"R-344", "A silence begins when it is stored and is listed until it is over; the same id again changes nothing; ended before, it is gone; each is audited with who and why.", "C-74", func(w *world) {
			short := alert.Silence{ID: sluice.NewID(), Rule: "dead-letters", Queue: queue, During: time.Minute}
			long := alert.Silence{ID: sluice.NewID(), During: time.Hour}
			for _, silence := range []alert.Silence{long, short, long} {
				saved, err := alert.Given(w.Store).SaveSilence(w.ctx, silence, person("the bank moves"))
				w.ok(err)
				w.near("until", saved.Until, w.Now().Add(silence.During))
				if saved.By != "ada" || saved.Reason != "the bank moves" || saved.Rule != silence.Rule || saved.Queue != silence.Queue {
					w.Fatalf("saved %+v", saved)
				}
			}
			book := w.book()
			equal(w, "silences", len(book.Silences), 2)
			equal(w, "that ends first", book.Silences[0].ID, short.ID)
			w.near("made at", book.Silences[0].CreatedAt, w.Now())
			w.Advance(2 * time.Minute)
			equal(w, "left", len(w.book().Silences), 1)
			w.is(alert.Given(w.Store).EndSilence(w.ctx, short.ID, person("late")), sluice.ErrNotFound)
			w.ok(alert.Given(w.Other).EndSilence(w.ctx, long.ID, person("it has moved")))
			w.is(alert.Given(w.Store).EndSilence(w.ctx, long.ID, person("again")), sluice.ErrNotFound)
			equal(w, "after the end", len(w.book().Silences), 0)
			if told := w.alertTold("*"); !slices.Equal(told, []sluice.Event{audit.EventUnsilence, audit.EventSilence}) {
				w.Fatalf("told %v", told)
			}
		}},
	}
}
