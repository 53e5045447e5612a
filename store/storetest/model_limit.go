package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
)

// ModelOfLimits is Model with fewer verbs: jobs with limit keys and costs under a limit that changes, of which keys are closed. At
// the end it proves from the full audit that no claim broke the limit.
func ModelOfLimits(t *testing.T, open func(t *testing.T) Bench) {
	t.Helper()
	runs := 0
	var bench Bench
	rapid.Check(t, func(run *rapid.T) {
		if runs%runsPerBench == 0 {
			bench = open(t)
		}
		runs++
		modelOfLimits(t.Context(), run, bench)
	})
}

func modelOfLimits(ctx context.Context, t *rapid.T, bench Bench) {
	m := newMachine(ctx, t, bench)
	m.settings.Audit, m.plain = sluice.AuditFull, true
	m.settings.Limits = m.queue
	m.settings.Fair = rapid.IntRange(0, 2).Draw(t, "tenants take turns if 0") == 0
	m.saveSettings()
	m.setLimit(t)
	t.Repeat(map[string]func(*rapid.T){
		"enqueue": m.enqueue, "enqueue more": m.enqueue, "enqueue yet more": m.enqueue,
		"claim": m.claim, "claim more": m.claim, "claim yet more": m.claim, "claim again": m.claim,
		"settle": m.settle, "settle more": m.settle,
		"advance": m.advance, "share": m.share, "close key": m.closeKey,
		"intend": m.intend, "leave run": m.leaveRun, "cancel": m.cancel, "forget": m.forget, "recover": m.recover,
		"reschedule": m.reschedule, "edit": m.edit, "hold": m.hold, "release": m.release, "requeue": m.requeue,
		"": m.agree,
	})
	m.replay()
}

// leaveRun has a run of a job begin, and cancels, requeues and edits the job while the run may be open. Drawn one by one, these verbs
// seldom meet in one job.
func (m *machine) leaveRun(t *rapid.T) {
	if len(m.claims) == 0 {
		t.Skip("nothing was claimed")
	}
	claim := m.pickClaim(t)
	m.picked = &claim
	defer func() { m.picked = nil }()
	for _, verb := range []func(*rapid.T){m.intend, m.cancel, m.requeue, m.edit, m.edit} {
		verb(t)
	}
}

// share changes the limit of the queue, and lets the queue share it or not.
func (m *machine) share(t *rapid.T) {
	m.setLimit(t)
	m.settings.Limits = ""
	if m.plain && rapid.IntRange(0, 3).Draw(t, "shares it unless 0") > 0 || !m.plain && rapid.Bool().Draw(t, "shares it") {
		m.settings.Limits = m.queue
	}
	m.saveSettings()
	_, err := m.bench.Store.Repair(m.ctx, "upkeep") // it lets in the parked jobs that no limit keeps out any more
	m.must(err)
}

func (m *machine) setLimit(t *rapid.T) {
	m.tick()
	most, closed, perKey, byCost, rate := 0, false, true, true, sluice.Rate{}
	if m.plain && rapid.Bool().Draw(t, "the hardest kind") { // jobs wait behind one of their key, and others come before it
		most = rapid.SampledFrom([]int{2, 3, 5}).Draw(t, "units of each key")
	} else {
		most, closed = rapid.SampledFrom([]int{0, 1, 2, 5}).Draw(t, "concurrency"), rapid.IntRange(0, 4).Draw(t, "closed if 0") == 0
		perKey, byCost = rapid.Bool().Draw(t, "per key"), rapid.Bool().Draw(t, "by cost")
		if perKey || byCost { // other rates count starts, which holders report; see Turns
			rate = sluice.Rate{Jobs: rapid.SampledFrom([]int{0, 0, 0, 12}).Draw(t, "an hour"), Per: time.Hour}
		}
	}
	stored, err := limit.Change(m.ctx, m.store(t), m.queue, person("model"), func(l *limit.Limit) error {
		l.Concurrency, l.Closed, l.PerKey, l.ByCost, l.Rate, l.Burst = most, closed, perKey, byCost, rate, 0
		if rate.IsZero() {
			l.Rate = sluice.Rate{}
		}
		return nil
	})
	m.must(err)
	m.limit = stored
}

// closeKey closes a limit key for a while, or opens it.
func (m *machine) closeKey(t *rapid.T) {
	m.tick()
	key := rapid.SampledFrom(modelLimitKeys).Draw(t, "limit key")
	while := time.Duration(rapid.SampledFrom([]int{0, 5, 10}).Draw(t, "for minutes")) * minute
	var err error
	if while == 0 {
		err = limit.OpenKey(m.ctx, m.store(t), m.queue, key, person("model"))
	} else {
		err = limit.CloseKey(m.ctx, m.store(t), m.queue, key, while, person("model"))
	}
	switch {
	case m.limit.Version == 0:
		m.agreeOn("close key", err, sluice.ErrNotFound)
	case !m.limit.PerKey:
		m.agreeOn("close key", err, sluice.ErrNotAllowed)
	case while == 0:
		m.agreeOn("open key", err, nil)
		delete(m.closedKeys, key)
	default:
		m.agreeOn("close key", err, nil)
		m.closedKeys[key] = max(m.closedKeys[key], m.now+while)
	}
}

// modelLimitKeys are those of the model's jobs.
var modelLimitKeys = []string{"a.example", "b.example"}

// drawLimited draws what limits count of a job.
func drawLimited(t *rapid.T, o *sluice.EnqueueOptions) {
	o.LimitKey = rapid.SampledFrom(append([]string{""}, modelLimitKeys...)).Draw(t, "limit key")
	o.Cost = rapid.SampledFrom([]int{0, 0, 2, 3, 9}).Draw(t, "cost")
}

// keyed reports whether the limit of the queue judges each job: it is per key or by cost.
func (m *machine) keyed() bool {
	return m.settings.Limits != "" && (m.limit.PerKey || m.limit.ByCost)
}

// room returns how many more jobs the limit of the queue lets a claim take.
func (m *machine) room(most int) int {
	switch {
	case m.settings.Limits == "":
		return most
	case m.limit.Closed:
		return 0
	case m.limit.Concurrency == 0 || m.keyed():
		return most
	}
	return min(most, max(0, m.limit.Concurrency-m.unitsOf("", false)))
}

// unitsOf counts what is in flight under the limit of the queue, of one limit key or of all jobs.
func (m *machine) unitsOf(key string, ofKey bool) (units int) {
	count := func(limitKey string, cost int) {
		if !ofKey || limitKey == key {
			units += m.unitsFor(cost)
		}
	}
	for _, run := range m.strays {
		count(run.limitKey, run.cost)
	}
	for _, j := range m.jobs {
		if j.state == sluice.StateClaimed || j.state == sluice.StateDispatched {
			count(j.limitKey, j.cost)
		}
	}
	return units
}

func (m *machine) unitsFor(cost int) int {
	if m.limit.ByCost {
		return max(cost, 1)
	}
	return 1
}

// admitted returns the first of the claimable jobs that the limit of the queue lets in, in their order. Nothing overtakes a job
// that a limit by cost keeps out; a limit per key keeps back the jobs of one key, and no others.
func (m *machine) admitted(ids []sluice.ID, most int) (fit []sluice.ID) {
	if !m.keyed() {
		return ids[:min(len(ids), most)]
	}
	taken, out := make(map[string]int), make(map[string]bool)
	for _, id := range ids {
		job := m.jobs[id]
		key, units := "", m.unitsFor(job.cost)
		if m.limit.PerKey {
			key = job.limitKey
		}
		judged := !m.limit.PerKey || key != ""
		if judged && (out[key] || m.closedKeys[key] > m.now && m.limit.PerKey || !m.fits(key, units, taken[key])) {
			if out[key] = true; !m.limit.PerKey {
				break
			}
			continue
		}
		if len(fit) == most {
			break
		}
		taken[key] += units
		fit = append(fit, id)
	}
	return fit
}

// fits reports whether the concurrency has room for a job beside those that the claim has taken.
func (m *machine) fits(key string, units, taken int) bool {
	most := m.limit.Concurrency
	return most == 0 || most-m.unitsOf(key, m.limit.PerKey)-taken >= min(units, most)
}

// agreeOnClaim compares claimed jobs with those that may be claimed. The replay of the audit looks at rates; here the
// claim may take fewer because of one. If it takes fewer for another reason, the next claim is to come at once.
func (m *machine) agreeOnClaim(claimed sluice.Claimed, got, claimable []sluice.ID, most int) {
	want := m.admitted(claimable, most)
	switch {
	case slices.Equal(got, want):
		return
	case m.settings.Fair: // other jobs may come first: see agreeOnTurns
		want = nil
	}
	for _, id := range want {
		if !slices.Contains(got, id) && !m.missesATurn(id, len(got) == most || claimed.NextDue == 0) {
			m.Fatalf("claimed %v, want %v; the next look is in %s", got, want, claimed.NextDue)
		}
	}
	for _, id := range got {
		if !slices.Contains(claimable, id) {
			m.Fatalf("claimed %s, which is not one of %v", id, claimable)
		}
	}
}

// agreeOnTurns checks that a claim where tenants take turns left no job that fits, unless it took as many as it was asked for, or
// the next claim is to come at once. A limit by cost for all keys together may stop at a dear job whose tenant's turn it is.
func (m *machine) agreeOnTurns(claimed sluice.Claimed, request sluice.ClaimRequest) {
	atOnce := claimed.NextDue >= 0 && claimed.NextDue <= time.Second
	if !m.settings.Fair || atOnce || len(claimed.Jobs) == request.Limit || m.keyed() && (!m.limit.PerKey || !m.limit.Rate.IsZero()) {
		return
	}
	if left := m.admitted(m.claimable(request.ClaimAhead), m.room(1)); len(left) > 0 {
		m.Fatalf("a claim of up to %d took %d and left %s, which fits; the next look is in %s", request.Limit, len(claimed.Jobs), left[0], claimed.NextDue)
	}
}

// missesATurn reports whether a claim may leave out a job that fits: for a rate, or because of the parked jobs of its limit key one
// before it was let in, which was put off meanwhile. Then the next claim takes the job, if it comes at once.
func (m *machine) missesATurn(id sluice.ID, atOnce bool) bool {
	if m.keyed() && !m.limit.Rate.IsZero() {
		return true
	}
	if !atOnce {
		return false
	}
	job := m.jobs[id]
	for _, other := range m.jobs {
		putOff := other.state == sluice.StateQueued && other.due > m.now && other.limitKey == job.limitKey && other.priority < job.priority
		if putOff && m.keyed() && m.limit.PerKey && job.limitKey != "" {
			return true
		}
	}
	return false
}

// parks reports whether a job waits for itself because a claim has set it aside for a limit per key, which only stores know.
func (m *machine) parks(id, blockedBy sluice.ID) bool {
	job := m.jobs[id]
	return blockedBy == id && job.blockedBy.IsZero() && job.state == sluice.StateQueued && job.limitKey != "" && m.settings.Limits != "" && m.limit.PerKey
}

func (m *machine) pause(*rapid.T) {
	m.tick()
	m.settings.Paused = !m.settings.Paused
	m.saveSettings()
}

func (m *machine) saveSettings() {
	q, err := m.bench.Store.SaveQueue(m.ctx, sluice.Queue{Name: m.queue, Version: m.version, Settings: m.settings}, sluice.Act{By: "model", ID: sluice.NewID()})
	m.must(err)
	m.version = q.Version
}
