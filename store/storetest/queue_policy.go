package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/audit"
)

func queuePolicyRules() []Rule {
	return []Rule{
		{"R-525", "Which new queues are made is stored by version, and told with who and why; unless somebody has changed it, 10,000 are, and a job makes them.", "I-15", func(w *world) {
			policy := w.policy()
			equal(w, "policy", policy, admission.Policy{MaxQueues: 10_000})
			w.save(func(*sluice.Settings) {})
			policy.MaxQueues, policy.Declared = 7, true
			saved, err := admission.Given(w.Store).SaveQueuePolicy(w.ctx, policy, person("few"))
			w.ok(err)
			for _, store := range []sluice.Store{w.Store, w.Other} {
				read, err := admission.Of(w.ctx, store)
				w.ok(err)
				w.near("changed at", read.ChangedAt, w.Now())
				saved.ChangedAt = read.ChangedAt
				equal(w, "policy", read, saved)
			}
			equal(w, "policy", saved, admission.Policy{MaxQueues: 7, Declared: true, Version: 1, ChangedAt: saved.ChangedAt, ChangedBy: "ada", Reason: "few", Stored: 1})
			for _, version := range []int64{0, 2} {
				policy.Version = version
				_, err = admission.Given(w.Other).SaveQueuePolicy(w.ctx, policy, person("late"))
				w.is(err, sluice.ErrConflict)
			}
			saved.Declared = false
			saved, err = admission.Given(w.Other).SaveQueuePolicy(w.ctx, saved, person("again"))
			w.ok(err)
			equal(w, "version", saved.Version, 2)
			told, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectPolicy, Name: "queues", Limit: 10})
			w.ok(err)
			equal(w, "entries", len(told), 2)
			equal(w, "reason", told[0].Reason, "again")
			equal(w, "before", squeezed(told[0].Before), `{"declared":true,"max_queues":7}`)
			equal(w, "after", squeezed(told[0].After), `{"declared":false,"max_queues":7}`)
		}},
		{"R-526", "Where queues must be declared, a job makes none; somebody who gives it settings does, and upkeep for jobs that are stored.", "I-1", func(w *world) {
			other := insertOf(sluice.EnqueueOptions{})
			other.Queue = "other"
			_, err := w.Store.Enqueue(w.ctx, []sluice.Insert{other})
			w.ok(err)
			w.limitQueues(func(p *admission.Policy) { p.Declared = true })
			fresh := sluice.Queue{Name: queue, Settings: sluice.DefaultSettings()}
			unknown := func(err error) {
				w.Helper()
				w.is(err, sluice.ErrNotFound)
				var refused *admission.UnknownQueueError
				if !errors.As(err, &refused) || refused.Queue != queue {
					w.Fatalf("error %v", err)
				}
			}
			unknown(w.admit(queue)[0])
			equal(w, "queues", w.policy().Stored, 0)
			saved, err := w.Other.SaveQueue(w.ctx, fresh, person("declared"))
			w.ok(err)
			w.ok(w.admit(queue)[0])
			_, err = w.Store.SaveQueue(w.ctx, fresh, person("declared"))
			w.is(err, sluice.ErrConflict)
			_, err = w.Store.SaveQueue(w.ctx, saved, person("a change"))
			w.ok(err)
			_, err = w.Store.Repair(w.ctx, "upkeep")
			w.ok(err)
			equal(w, "queues", w.policy().Stored, 2)
		}},
		{"R-527", "A store that has as many queues as it may makes no other, however many are made at once, and whoever makes them; those that it has can be changed.", "I-15", func(w *world) {
			q := w.save(func(*sluice.Settings) {})
			w.limitQueues(func(p *admission.Policy) { p.MaxQueues = 4 })
			var all sync.WaitGroup
			errs := make([]error, 12)
			for n := range errs {
				store := []sluice.Store{w.Store, w.Other}[n%2]
				all.Go(func() {
					name := fmt.Sprint("new-", n)
					if n%3 > 0 {
						_, errs[n] = store.SaveQueue(w.ctx, sluice.Queue{Name: name, Settings: sluice.DefaultSettings()}, person("test"))
						return
					}
					refused, err := store.Admit(w.ctx, []string{name}, person("test"))
					errs[n] = errors.Join(append(refused, err)...)
				})
			}
			all.Wait()
			made := 0
			for _, err := range errs {
				if err == nil {
					made++
					continue
				}
				w.tooMany(err)
			}
			equal(w, "queues made", made, 3)
			equal(w, "queues", w.policy().Stored, 4)
			w.tooMany(w.admit("another")[0])
			w.ok(w.admit(queue)[0])
			q.Settings.MaxAttempts = 9
			_, err := w.Store.SaveQueue(w.ctx, q, person("test"))
			w.ok(err)
			w.ok(w.Store.DeleteQueue(w.ctx, queue, person("test")))
			w.save(func(*sluice.Settings) {})
			w.limitQueues(func(p *admission.Policy) { p.MaxQueues = 1 })
			w.tooMany(w.admit("another")[0])
		}},
		{"R-535", "The new queues that jobs name are made together, with the default settings, and told with who and why; those that are stored stay as they are, and the last ones are refused where not all have room.", "I-15", func(w *world) {
			kept := w.save(func(s *sluice.Settings) { s.MaxAttempts = 9 })
			w.limitQueues(func(p *admission.Policy) { p.MaxQueues = 3 })
			refused := w.admit("zebra", queue, "ant", "bee")
			equal(w, "refused", errors.Join(refused[:3]...), nil)
			w.tooMany(refused[3])
			equal(w, "refused again", errors.Join(w.admit("ant", "zebra")...), nil)
			stored, err := w.Other.Queues(w.ctx, sluice.QueueFilter{})
			w.ok(err)
			var names []string
			for _, q := range stored {
				names = append(names, q.Name)
				if q.Name == queue {
					equal(w, "kept", q.Version, kept.Version)
					continue
				}
				equal(w, "settings", q.Settings, sluice.DefaultSettings())
				equal(w, "version", q.Version, 1)
				equal(w, "changed by", q.ChangedBy, "ada")
				equal(w, "untold", q.Unrecorded(), false)
				w.near("changed at", q.ChangedAt, w.Now())
				told, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectQueue, Name: q.Name, Limit: 10})
				w.ok(err)
				equal(w, "entries", len(told), 1)
				equal(w, "reason", told[0].Reason, "first job")
				equal(w, "before", len(told[0].Before), 0)
				var after sluice.Settings
				w.ok(json.Unmarshal(told[0].After, &after))
				equal(w, "after", after, q.Settings)
			}
			equal(w, "queues", fmt.Sprint(names), fmt.Sprint([]string{"ant", queue, "zebra"}))
		}},
	}
}

// admit asks for queues that jobs name.
func (w *world) admit(queues ...string) []error {
	w.Helper()
	refused, err := w.Store.Admit(w.ctx, queues, person("first job"))
	w.ok(err)
	equal(w, "answers", len(refused), len(queues))
	return refused
}

// policy reads which new queues are made.
func (w *world) policy() admission.Policy {
	w.Helper()
	policy, err := admission.Of(w.ctx, w.Store)
	w.ok(err)
	return policy
}

// limitQueues changes which new queues are made.
func (w *world) limitQueues(change func(*admission.Policy)) {
	w.Helper()
	policy := w.policy()
	change(&policy)
	_, err := admission.Given(w.Store).SaveQueuePolicy(w.ctx, policy, person("test"))
	w.ok(err)
}

// tooMany makes sure that a queue was refused because there are as many as there may be.
func (w *world) tooMany(err error) {
	w.Helper()
	w.is(err, sluice.ErrNotAllowed)
	var refused *admission.QueueLimitError
	policy := w.policy()
	if !errors.As(err, &refused) || refused.Stored != policy.Stored || refused.MaxQueues != policy.MaxQueues {
		w.Fatalf("error %v; want one of %+v", err, policy)
	}
}
