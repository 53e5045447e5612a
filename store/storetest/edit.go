package storetest

import (
	"encoding/json"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/edit"
	"github.com/sluice-queue/sluice/limit"
)

func editRules() []Rule {
	return []Rule{
		{"R-660", "An edit gives a waiting job another payload, priority, due time, labels and tenant, and leaves what it does not name; the audit has the changed fields before and after, and of a payload the size alone.", "C-9, H-14", func(w *world) {
			id := w.add(sluice.EnqueueOptions{Tenant: "acme", Labels: map[string]string{"kind": "old"}, Delay: time.Hour})
			was := w.job(id)
			tenant, due := "bolt", w.Now().Add(-time.Minute).UTC().Truncate(time.Microsecond)
			act := person("wrong amount")
			w.ok(w.edit(was, edit.Change{Payload: json.RawMessage(`{"amount": 200}`), Priority: 2, DueAt: due, Labels: map[string]string{"kind": "new"}, Tenant: &tenant}, act))
			is := w.inState(id, sluice.StateQueued)
			equal(w, "payload", string(is.Payload), `{"amount": 200}`)
			equal(w, "priority", is.Priority, 2)
			equal(w, "due at", is.DueAt, due)
			equal(w, "label", is.Labels["kind"], "new")
			equal(w, "tenant", is.Tenant, "bolt")
			equal(w, "generation", is.Generation, 1)
			e := w.told(id, audit.EventEdit)
			equal(w, "act", e.ActID, act.ID)
			equal(w, "reason", e.Reason, "wrong amount")
			for text, want := range map[string]string{string(e.Before): `"priority":5`, string(e.After): `"priority":2`} {
				if squeezed := strings.ReplaceAll(text, " ", ""); !strings.Contains(squeezed, want) || strings.Contains(squeezed, "amount") {
					w.Fatalf("told %s, want %s in it and no payload", text, want)
				}
			}
			w.ok(w.edit(was, edit.Change{Priority: 3}, act)) // sent again
			equal(w, "priority", w.job(id).Priority, 2)
			c := w.claimOne()
			equal(w, "claimed payload", string(c.Payload), `{"amount": 200}`)
			equal(w, "claimed tenant", c.Tenant, "bolt")
			equal(w, "claimed priority", c.Priority, 2)
			w.done(by(sluice.EventComplete, c))
			w.claimNone("it was claimed once")
		}},
		{"R-661", "An edit is refused if somebody changed or ran the job since it was read; a job that does not wait is not allowed, an unknown one not found.", "C-9", func(w *world) {
			id := w.add(sluice.EnqueueOptions{})
			was := w.job(id)
			w.ok(w.edit(was, edit.Change{Priority: 4}, person("first")))
			w.is(w.edit(was, edit.Change{Priority: 3}, person("second")), sluice.ErrConflict)
			was = w.job(id)
			c := w.claimOne()
			w.is(w.edit(was, edit.Change{Priority: 3}, person("claimed")), sluice.ErrNotAllowed)
			w.done(by(sluice.EventRelease, c))
			w.is(w.edit(was, edit.Change{Priority: 3}, person("ran since")), sluice.ErrConflict)
			w.ok(w.edit(w.job(id), edit.Change{Labels: map[string]string{}}, person("read again")))
			w.cancel(person("enough"), id)
			w.is(w.edit(w.job(id), edit.Change{Priority: 3}, person("ended")), sluice.ErrNotAllowed)
			w.is(w.edit(sluice.Job{ID: sluice.NewID(), Queue: queue}, edit.Change{Priority: 3}, person("unknown")), sluice.ErrNotFound)
			equal(w, "priority", w.job(id).Priority, 4)
		}},
		{"R-662", "A claim takes edited jobs by their new priority, due time and tenant, in queues that serve tenants in turns too.", "I-1", func(w *world) {
			for _, fair := range []bool{false, true} {
				w.save(func(s *sluice.Settings) { s.Fair = fair })
				first, second, late := w.addTo("acme", 5), w.addTo("acme", 5), w.add(sluice.EnqueueOptions{Tenant: "acme", Delay: time.Hour})
				w.done(by(sluice.EventComplete, w.claimOne())) // the first: claims go on from there
				w.inState(first, sluice.StateCompleted)
				bolt := "bolt"
				w.ok(w.edit(w.job(late), edit.Change{Priority: 1, DueAt: w.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond), Tenant: &bolt}, person("urgent")))
				w.ok(w.edit(w.job(second), edit.Change{Priority: 9}, person("later")))
				equal(w, "ready", w.depth().Ready, 2)
				claims := w.claims(late, second)
				equal(w, "tenant", claims[0].Tenant, "bolt")
				for _, c := range claims {
					w.done(by(sluice.EventComplete, c))
				}
				w.claimNone("both are done")
			}
		}},
		{"R-663", "An edit passes the checks of an enqueue; one that changes nothing is invalid. A held job can be edited, and stays held.", "C-9", func(w *world) {
			w.save(func(s *sluice.Settings) { s.PayloadLimit = 1024 })
			id := w.add(sluice.EnqueueOptions{Hold: "look", ExpiresAt: w.Now().Add(time.Hour)})
			for _, change := range []edit.Change{
				{},
				{Payload: json.RawMessage(`{`)},
				{Payload: json.RawMessage(`"` + strings.Repeat("x", 1024) + `"`)},
				{Priority: 11},
				{Labels: map[string]string{"": "x"}},
				{DueAt: w.Now().Add(2 * time.Hour)},
			} {
				w.is(w.edit(w.job(id), change, person("wrong")), sluice.ErrInvalid)
			}
			w.ok(w.edit(w.job(id), edit.Change{Priority: 1}, person("right")))
			w.claimNone("it is held")
			w.release(person("go"), id)
			w.finishes(id)
		}},
		{"R-942", "An edit gives a waiting job another limit key and cost, audited before and after. A job that waits for its limit key goes on by the new one, and waits again if that has no room.", "C-9, C-35, H-14", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 3, PerKey: true, ByCost: true}, "host")
			running := w.add(sluice.EnqueueOptions{LimitKey: "a", Cost: 3})
			equal(w, "the first", w.claimOnce(9).Jobs[0].ID, running)
			waits, stays := w.add(sluice.EnqueueOptions{LimitKey: "a", Cost: 2}), w.add(sluice.EnqueueOptions{LimitKey: "a"})
			equal(w, "while the key is full", len(w.claimOnce(9).Jobs), 0)
			other, full, none, cost, one := "b", "a", "", 3, 0
			was := w.job(waits)
			w.ok(w.edit(was, edit.Change{LimitKey: &full, Cost: &cost}, person("it is larger")))
			equal(w, "still full", len(w.claimOnce(9).Jobs), 0)
			w.is(w.edit(was, edit.Change{Cost: &one}, person("too late")), sluice.ErrConflict)
			w.ok(w.edit(w.job(waits), edit.Change{LimitKey: &other}, person("moved")))
			e := w.told(waits, audit.EventEdit)
			equal(w, "before and after", strings.ReplaceAll(string(e.Before)+string(e.After), " ", ""), `{"limit_key":"a"}{"limit_key":"b"}`)
			claimed := w.claimOnce(9).Jobs
			equal(w, "of the new key", keysIn(claimed), "b:1")
			equal(w, "with its cost", claimed[0].Cost, 3)
			equal(w, "of another new key", keysIn(w.claimEdited(stays, edit.Change{LimitKey: &other, Cost: &one})), "")
			equal(w, "cost", w.job(stays).Cost, 0)
			equal(w, "without a key", keysIn(w.claimEdited(stays, edit.Change{LimitKey: &none})), ":1")
			uses, err := limit.KeyUses(w.ctx, w.Store, "host", "a", "b")
			w.ok(err)
			equal(w, "in flight of both keys", uses[0].InFlight+uses[1].InFlight, 6)
			equal(w, "waiting for both keys", uses[0].Waiting+uses[1].Waiting, 0)
			long, wrong := strings.Repeat("k", sluice.MaxKeyBytes+1), -1
			id := w.add(sluice.EnqueueOptions{})
			w.is(w.edit(w.job(id), edit.Change{LimitKey: &long}, person("wrong")), sluice.ErrInvalid)
			w.is(w.edit(w.job(id), edit.Change{Cost: &wrong}, person("wrong")), sluice.ErrInvalid)
		}},
	}
}

// claimEdited edits a job, and returns what can be claimed then.
func (w *world) claimEdited(id sluice.ID, change edit.Change) []*sluice.Claim {
	w.Helper()
	w.ok(w.edit(w.job(id), change, person("moved")))
	return w.claimOnce(9).Jobs
}

func (w *world) edit(job sluice.Job, change edit.Change, act sluice.Act) error {
	w.Helper()
	return edit.Job(w.ctx, w.Store, job, change, act, nil)
}

// edit changes the priority, and perhaps the due time, of a job as it is or as it was.
func (m *machine) edit(t *rapid.T) {
	id, job := m.pickJob(t)
	m.tick()
	read, err := m.bench.Store.Job(m.ctx, id)
	m.must(err)
	e := edit.Edit{JobID: id, Version: edit.VersionOf(read), Change: edit.Change{Priority: rapid.IntRange(4, 6).Draw(t, "priority")}}
	in := time.Duration(rapid.SampledFrom([]int{0, 0, 10}).Draw(t, "due in minutes")) * minute
	if job.expires > 0 && m.now+in >= job.expires { // the SQL functions refuse a due time after the expiry, and Go refuses it before the store
		in = 0
	}
	if in > 0 {
		e.DueAt = m.bench.Now().Add(in).UTC().Truncate(time.Microsecond)
	}
	limitKey, cost := job.limitKey, job.cost
	if rapid.IntRange(0, 2).Draw(t, "another limit key and cost if 0") == 0 {
		limitKey = rapid.SampledFrom(append([]string{""}, modelLimitKeys...)).Draw(t, "limit key")
		cost = rapid.SampledFrom([]int{0, 2, 9}).Draw(t, "cost")
		e.LimitKey, e.Cost = &limitKey, &cost
	}
	stale := rapid.Bool().Draw(t, "as it was")
	if stale {
		e.Version = "another"
	}
	err = edit.Given(m.store(t)).EditJob(m.ctx, e, person("model"))
	switch {
	case job.state != sluice.StateQueued:
		m.agreeOn("edit", err, sluice.ErrNotAllowed)
	case stale:
		m.agreeOn("edit", err, sluice.ErrConflict)
	default:
		m.agreeOn("edit", err, nil)
		job.limitKey, job.cost = limitKey, cost
		if job.priority = e.Priority; in > 0 {
			job.due = m.now + in
		}
	}
}
