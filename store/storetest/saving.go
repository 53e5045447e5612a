package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/search"
	"github.com/sluice-queue/sluice/tenancy"
)

func savingRules() []Rule {
	return []Rule{
		{"R-620", "The act that saves a versioned thing, sent again to whichever process, gives its first answer and is audited once; with other content it stores nothing.", "I-15", func(w *world) {
			for _, k := range w.versioned() {
				for version := range int64(2) { // a new thing, and a stored one
					act := person("test")
					first, err := k.save(w.Store, version, int(version)+1, act)
					w.fine(k.kind, err)
					equal(w, k.kind+": version", first.version, version+1)
					for _, store := range []sluice.Store{w.Store, w.Other} {
						again, err := k.save(store, version, int(version)+1, act)
						w.fine(k.kind+" again", err)
						equal(w, k.kind+": version again", again.version, first.version)
						equal(w, k.kind+": changed at again", again.at.Equal(first.at), true)
					}
					other, err := k.save(w.Other, version, 9, act)
					if err == nil { // kinds that know their act, or have no content
						equal(w, k.kind+": version with other content", other.version, first.version)
						equal(w, k.kind+": content", other.content, first.content)
					} else {
						w.is(err, sluice.ErrConflict)
					}
					equal(w, k.kind+": audit entries", w.auditedSaves(k), int(version)+1)
				}
			}
		}},
		{"R-985", "An act that has saved a versioned thing, sent again to whichever process after other acts, stores nothing and answers with the thing as it is; if it was deleted since, with an ErrNotFound.", "[guide](guide/http.md)", func(w *world) {
			for _, k := range w.versioned() {
				act := person("first")
				_, err := k.save(w.Store, 0, 1, act)
				w.fine(k.kind, err)
				now, err := k.save(w.Other, 1, 2, person("second"))
				w.fine(k.kind, err)
				for _, store := range []sluice.Store{w.Store, w.Other} {
					for version := range int64(3) {
						again, err := k.save(store, version, 1, act)
						w.fine(k.kind+" again", err)
						equal(w, k.kind+": again", again, now)
					}
				}
				equal(w, k.kind+": audit entries", w.auditedSaves(k), 2)
				if remove := w.removals()[k.kind]; remove != nil {
					w.fine(k.kind, remove(w.Store, person("test")))
					_, err = k.save(w.Other, 0, 1, act)
					w.is(err, sluice.ErrNotFound)
				}
			}
		}},
		{"R-986", "An act that has deleted a thing, sent again to whichever process, changes nothing, also if the thing was stored anew.", "[guide](guide/http.md)", func(w *world) {
			removals := w.removals()
			for _, k := range w.versioned() {
				remove := removals[k.kind]
				if remove == nil {
					continue
				}
				delete(removals, k.kind)
				act := person("test")
				_, err := k.save(w.Store, 0, 1, person("test"))
				w.fine(k.kind, err)
				w.fine(k.kind, remove(w.Store, act))
				w.fine(k.kind+" again", remove(w.Other, act))
				_, err = k.save(w.Other, 0, 2, person("test"))
				w.fine(k.kind, err)
				w.fine(k.kind+" again", remove(w.Other, act))
				_, err = k.save(w.Store, 1, 3, person("test"))
				w.fine(k.kind+" is stored", err)
			}
			equal(w, "kinds that were not saved", len(removals), 0)
		}},
		{"R-621", "A versioned thing is saved only from the version that is stored; another act gets a conflict, also with the same content, and stores and audits nothing.", "I-15", func(w *world) {
			for _, k := range w.versioned() {
				_, err := k.save(w.Store, 3, 1, person("unknown"))
				w.is(err, sluice.ErrConflict)
				for version := range int64(2) {
					_, err = k.save(w.Store, version, int(version), person("test"))
					w.fine(k.kind, err)
				}
				for _, version := range []int64{0, 1, 3} {
					_, err := k.save(w.Other, version, 1, person("stale"))
					w.is(err, sluice.ErrConflict)
				}
				saved, err := k.save(w.Other, 2, 3, person("test"))
				w.fine(k.kind, err)
				equal(w, k.kind+": version", saved.version, 3)
				equal(w, k.kind+": audit entries", w.auditedSaves(k), 3)
			}
		}},
		{"R-622", "Of many who save a versioned thing at once, new or from the same version, one does, and it alone is audited.", "I-15", func(w *world) {
			for _, k := range w.versioned() {
				for version := range int64(2) {
					var all sync.WaitGroup
					var stored atomic.Int32
					for n := range 6 {
						store := []sluice.Store{w.Store, w.Other}[n%2]
						all.Go(func() {
							_, err := k.save(store, version, int(version)*10+n, person("test"))
							if err == nil {
								stored.Add(1)
								return
							}
							if !errors.Is(err, sluice.ErrConflict) {
								w.Errorf("%s: the error is %v, want a conflict", k.kind, err)
							}
						})
					}
					all.Wait()
					equal(w, k.kind+": stored", int(stored.Load()), 1)
					equal(w, k.kind+": audit entries", w.auditedSaves(k), int(version)+1)
				}
			}
		}},
	}
}

// versionedKind is a kind of versioned things, with one thing of it.
type versionedKind struct {
	kind, name string
	object     sluice.Object
	// save saves the thing, read with a version, with the n-th content.
	save func(store sluice.Store, version int64, n int, act sluice.Act) (answer, error)
}

// answer is the version, instant and content that a save returned.
type answer struct {
	version int64
	at      time.Time
	content string
}

func answerOf(version int64, at time.Time, content any, err error) (answer, error) {
	return answer{version, at, fmt.Sprint(content)}, err
}

// versioned lists the kinds of versioned things. A silence has no version; R-344 is its rule.
func (w *world) versioned() []versionedKind {
	id := sluice.NewID()
	return []versionedKind{
		{"queue", queue, audit.ObjectQueue, func(store sluice.Store, version int64, n int, act sluice.Act) (answer, error) {
			settings := sluice.DefaultSettings()
			settings.MaxAttempts = n + 1
			q, err := store.SaveQueue(w.ctx, sluice.Queue{Name: queue, Version: version, Settings: settings}, act)
			return answerOf(q.Version, q.ChangedAt, q.Settings.MaxAttempts, err)
		}},
		{"tenant", "acme", audit.ObjectTenant, func(store sluice.Store, version int64, n int, act sluice.Act) (answer, error) {
			t, err := tenancy.Given(store).SaveTenant(w.ctx, tenancy.Tenant{Name: "acme", Tier: fmt.Sprint("T", n), Version: version}, act)
			return answerOf(t.Version, t.ChangedAt, t.Tier, err)
		}},
		{"tier", "PRO", audit.ObjectTier, func(store sluice.Store, version int64, _ int, act sluice.Act) (answer, error) {
			t, err := tenancy.Given(store).SaveTier(w.ctx, tenancy.Tier{Name: "PRO", Version: version}, act)
			return answerOf(t.Version, t.ChangedAt, "", err)
		}},
		{"limits", "globex", audit.ObjectTenant, func(store sluice.Store, version int64, n int, act sluice.Act) (answer, error) {
			l, err := tenancy.Given(store).SaveTenantLimits(w.ctx, tenancy.Limits{Queue: queue, Tenant: "globex", Concurrency: &n, Version: version}, act)
			if err != nil {
				return answer{}, err
			}
			return answerOf(l.Version, l.ChangedAt, *l.Concurrency, nil)
		}},
		{"limit", "bank", audit.ObjectLimit, func(store sluice.Store, version int64, n int, act sluice.Act) (answer, error) {
			l, err := limit.Given(store).SaveLimit(w.ctx, limit.Limit{Name: "bank", Concurrency: n, Version: version}, act)
			return answerOf(l.Version, l.ChangedAt, l.Concurrency, err)
		}},
		{"instruction", "version 7", audit.ObjectHolder, func(store sluice.Store, version int64, n int, act sluice.Act) (answer, error) {
			wanted := []presence.Wanted{presence.WantedQuiesce, presence.WantedStop}[n%2]
			i, err := presence.Given(store).SaveInstruction(w.ctx, presence.Instruction{Target: presence.Target{Version: "7"}, Wanted: wanted, Version: version}, act)
			return answerOf(i.Version, i.ChangedAt, i.Wanted, err)
		}},
		{"policy", "queues", audit.ObjectPolicy, func(store sluice.Store, version int64, n int, act sluice.Act) (answer, error) {
			p, err := admission.Given(store).SaveQueuePolicy(w.ctx, admission.Policy{MaxQueues: 100 + n, Version: version}, act)
			return answerOf(p.Version, p.ChangedAt, p.MaxQueues, err)
		}},
		{"alert rule", "dead-letters/" + queue, audit.ObjectAlert, func(store sluice.Store, version int64, n int, act sluice.Act) (answer, error) {
			rule := deadRule(queue)
			rule.Version, rule.Threshold = version, float64(n)
			r, err := alert.Given(store).SaveAlertRule(w.ctx, rule, act)
			return answerOf(r.Version, r.ChangedAt, r.Threshold, err)
		}},
		{"token", "ci", audit.ObjectToken, func(store sluice.Store, version int64, n int, act sluice.Act) (answer, error) {
			token := access.Token{Name: "ci", Version: version, Role: access.RoleViewer, Hash: fmt.Sprint(n)}
			t, err := access.Given(store).SaveAccessToken(w.ctx, token, act)
			return answerOf(t.Version, t.ChangedAt, t.Hash, err)
		}},
		{"note", "9ac1f00d", audit.ObjectNote, func(store sluice.Store, version int64, n int, act sluice.Act) (answer, error) {
			note, err := deadletter.Given(store).SaveDeadNote(w.ctx, deadletter.Note{Fingerprint: "9ac1f00d", Owner: fmt.Sprint(n), Version: version}, act)
			return answerOf(note.Version, note.ChangedAt, note.Owner, err)
		}},
		{"schedule", "nightly", audit.ObjectSchedule, func(store sluice.Store, version int64, n int, act sluice.Act) (answer, error) {
			one := schedule.Schedule{Name: "nightly", Version: version, Definition: schedule.Definition{Queue: queue, Cron: "@daily", MaxFires: n + 1}}
			s, err := schedule.Given(store).SaveSchedule(w.ctx, one, act)
			return answerOf(s.Version, s.ChangedAt, s.MaxFires, err)
		}},
		{"operation", id.String(), audit.ObjectOperation, func(store sluice.Store, version int64, n int, act sluice.Act) (answer, error) {
			op := operation.Operation{ID: id, Kind: operation.KindCancel, State: operation.StateRunning, Query: search.Query{Queue: queue}}
			if stored, err := operation.Given(store).Operation(w.ctx, id); err == nil && version > 0 {
				op = stored
			}
			op.Version, op.Limit = version, n+1
			o, err := operation.Given(store).SaveOperation(w.ctx, op, act)
			return answerOf(o.Version, o.ChangedAt, o.Limit, err)
		}},
	}
}

// removals delete the things of kinds, by their names.
func (w *world) removals() map[string]func(store sluice.Store, act sluice.Act) error {
	return map[string]func(store sluice.Store, act sluice.Act) error{
		"queue": func(store sluice.Store, act sluice.Act) error { return store.DeleteQueue(w.ctx, queue, act) },
		"tenant": func(store sluice.Store, act sluice.Act) error {
			return tenancy.Given(store).Delete(w.ctx, audit.ObjectTenant, "acme", act)
		},
		"tier": func(store sluice.Store, act sluice.Act) error {
			return tenancy.Given(store).Delete(w.ctx, audit.ObjectTier, "PRO", act)
		},
		"limit": func(store sluice.Store, act sluice.Act) error {
			return limit.Given(store).DeleteLimit(w.ctx, "bank", act)
		},
		"alert rule": func(store sluice.Store, act sluice.Act) error {
			return alert.Given(store).DeleteAlertRule(w.ctx, "dead-letters", queue, act)
		},
		"token": func(store sluice.Store, act sluice.Act) error {
			return access.Given(store).DeleteAccessToken(w.ctx, "ci", act)
		},
		"schedule": func(store sluice.Store, act sluice.Act) error {
			return schedule.Given(store).DeleteSchedule(w.ctx, "nightly", act)
		},
	}
}

// fine ends a rule on an error of a kind.
func (w *world) fine(kind string, err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%s: %v", kind, err)
	}
}

// auditedSaves counts the audit entries about a kind's thing.
func (w *world) auditedSaves(k versionedKind) int {
	w.Helper()
	entries, err := w.Other.Audit(w.ctx, sluice.AuditFilter{Object: k.object, Name: k.name, Limit: 100})
	w.ok(err)
	return len(entries)
}
