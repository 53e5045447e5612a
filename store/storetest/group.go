package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
)

func groupRules() []Rule {
	return []Rule{
		{"R-680", "A new queue begins with the settings of its nearest group, whoever makes it; an internal queue has no group.", "I-15", func(w *world) {
			w.saveNamed("*", func(s *sluice.Settings) { s.MaxAttempts = 7 })
			w.saveNamed("mail.*", func(s *sluice.Settings) { s.MaxAttempts, s.Timeout = 8, time.Minute })
			for _, err := range w.admit("mail.welcome", "payments", "mail.bulk.news") {
				w.ok(err)
			}
			orphan := insertOf(sluice.EnqueueOptions{})
			orphan.Queue = "mail.orphan"
			_, err := w.Store.Enqueue(w.ctx, []sluice.Insert{orphan})
			w.ok(err)
			_, err = w.Other.Repair(w.ctx, "upkeep")
			w.ok(err)
			for name, attempts := range map[string]int{"mail.welcome": 8, "mail.bulk.news": 8, "mail.orphan": 8, "payments": 7} {
				equal(w, name, w.queueNamed(name).Settings.MaxAttempts, attempts)
			}
			equal(w, "timeout", w.queueNamed("mail.orphan").Settings.Timeout, time.Minute)
		}},
		{"R-681", "When a group changes, its queues follow in the same act, each audited; a value of its own stays, and so does a pause.", "I-15", func(w *world) {
			before := w.saveNamed("mail.*", func(s *sluice.Settings) { s.MaxAttempts = 8 })
			for _, name := range []string{"mail.a", "mail.own", "mail.paused"} {
				w.ok(w.admit(name)[0])
			}
			w.saveNamed("mail.own", func(s *sluice.Settings) { s.MaxAttempts = 1 })
			w.saveNamed("mail.paused", func(s *sluice.Settings) { s.Paused = true })
			w.saveNamed("mailer", func(s *sluice.Settings) { s.MaxAttempts = 8 })
			act := person("fewer tries")
			act.ID = sluice.NewID()
			changed := before
			changed.Settings.MaxAttempts, changed.Settings.Timeout = 4, time.Minute
			_, err := w.Other.SaveQueue(w.ctx, changed, act)
			w.ok(err)
			_, err = w.Store.SaveQueue(w.ctx, changed, act) // its answer was lost
			w.ok(err)
			for name, attempts := range map[string]int{"mail.*": 4, "mail.a": 4, "mail.own": 1, "mail.paused": 4, "mailer": 8} {
				equal(w, name, w.queueNamed(name).Settings.MaxAttempts, attempts)
			}
			equal(w, "timeout", w.queueNamed("mail.own").Settings.Timeout, time.Minute)
			equal(w, "paused", w.queueNamed("mail.paused").Settings.Paused, true)
			equal(w, "untold", w.queueNamed("mail.a").Unrecorded(), false)
			told, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectQueue, Name: "mail.a", Limit: 10})
			w.ok(err)
			equal(w, "entries", len(told), 2)
			equal(w, "reason", told[0].Reason, "follows mail.*: fewer tries")
			equal(w, "act", told[0].ActID, act.ID)
		}},
		{"R-682", "A change of a group that does not fit a queue's own settings changes nothing.", "I-15", func(w *world) {
			before := w.saveNamed("mail.*", func(*sluice.Settings) {})
			for _, name := range []string{"mail.a", "mail.own"} {
				w.ok(w.admit(name)[0])
			}
			own := w.saveNamed("mail.own", func(s *sluice.Settings) { s.Backoff.Max = 3 * time.Second })
			changed := before
			changed.Settings.Backoff.Base = 30 * time.Second
			_, err := w.Store.SaveQueue(w.ctx, changed, person("slower"))
			w.is(err, sluice.ErrInvalid)
			for _, q := range []sluice.Queue{before, own} {
				equal(w, q.Name, w.queueNamed(q.Name).Version, q.Version)
			}
			equal(w, "base", w.queueNamed("mail.a").Settings.Backoff.Base, before.Settings.Backoff.Base)
		}},
		{"R-683", "A group within another follows it, and its queues follow both.", "I-15", func(w *world) {
			w.saveNamed("mail.bulk.*", func(s *sluice.Settings) { s.Timeout = time.Minute })
			w.ok(w.admit("mail.bulk.news")[0])
			w.saveNamed("mail.*", func(s *sluice.Settings) { s.MaxAttempts, s.Timeout = 4, time.Hour })
			got := w.queueNamed("mail.bulk.news").Settings
			equal(w, "attempts", got.MaxAttempts, 4)
			equal(w, "timeout", got.Timeout, time.Minute)
		}},
		{"R-684", "A queue that is made while its group changes has the group's settings in the end.", "I-15", func(w *world) {
			w.saveNamed("mail.*", func(*sluice.Settings) {})
			var all sync.WaitGroup
			const n = 20
			for i := range n {
				all.Go(func() {
					for _, err := range w.admit(fmt.Sprint("mail.", i)) {
						if err != nil {
							w.Error(err)
						}
					}
				})
				all.Go(func() { // the last of them counts
					for {
						group := w.queueNamed("mail.*")
						group.Settings.MaxAttempts++
						if _, err := w.Other.SaveQueue(w.ctx, group, person("more")); err == nil {
							return
						}
					}
				})
			}
			all.Wait()
			want := w.queueNamed("mail.*").Settings.MaxAttempts
			equal(w, "attempts", want, sluice.DefaultSettings().MaxAttempts+n)
			for i := range n {
				equal(w, "attempts", w.queueNamed(fmt.Sprint("mail.", i)).Settings.MaxAttempts, want)
			}
		}},
	}
}

// queueNamed reads a queue.
func (w *world) queueNamed(name string) sluice.Queue {
	w.Helper()
	queues, err := w.Other.Queues(w.ctx, sluice.QueueFilter{Names: []string{name}})
	w.ok(err)
	if len(queues) != 1 {
		w.Fatalf("queue %s is not stored", name)
	}
	return queues[0]
}
