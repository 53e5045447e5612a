package storetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/tenancy"
)

// Turns looks that limits hold and nothing gets stuck, whatever happens: tenants with concurrencies, rates and
// weights of their own or by tier, jobs that come, end, come back or are called off, and limits that change in
// the middle of it. After every claim no concurrency is exceeded and no token overdrawn; what may go is claimed, and
// what may go later is told; and in the end every job is claimed and tenants get equal shares. A failure is
// shrunk to a short sequence and printed. The flag -rapid.checks says how many sequences.
func Turns(t *testing.T, open func(t *testing.T) Bench) {
	t.Helper()
	check := NewTurns(t.Context(), func() Bench { return open(t) })
	rapid.Check(t, check)
}

// runsPerBench is after how many runs the property goes on with an empty store. Memory looks at every job that
// it has whenever a queue begins to tell its tenants apart.
const runsPerBench = 50

// NewTurns gives the property that Turns checks. Each run of it has a queue and tenants of its own.
func NewTurns(ctx context.Context, open func() Bench) func(*rapid.T) {
	runs := 0
	var bench Bench
	return func(t *rapid.T) {
		if runs%runsPerBench == 0 {
			bench = open()
		}
		runs++
		if bench.Slow && rapid.IntRange(0, 2).Draw(t, "left out") > 0 {
			return
		}
		m := newTurnsMachine(ctx, t, bench)
		m.enqueue(t)
		m.changeLimits(t)
		t.Repeat(map[string]func(*rapid.T){
			"enqueue": m.enqueue, "enqueue more": m.enqueue,
			"claim": m.claim, "claim more": m.claim, "claim yet more": m.claim, "claim again": m.claim,
			"settle": m.settle, "settle more": m.settle,
			"advance": m.advance, "advance more": m.advance,
			"settings":     m.changeSettings,
			"limits":       m.changeLimits,
			"tier":         m.changeTier,
			"forget":       m.forget,
			"change minds": m.changeMinds,
			"recover":      m.recover,
			"upkeep":       m.upkeep,
		})
		m.finish(t)
		if rapid.IntRange(0, 7).Draw(t, "look at shares") == 0 {
			m.share(t)
		}
		m.forgetAll()
	}
}

func newTurnsMachine(ctx context.Context, t *rapid.T, bench Bench) *turnsMachine {
	id := sluice.NewID().String()
	m := &turnsMachine{
		T: t, ctx: ctx, bench: bench, queue: "turns-" + id, begun: time.Now(), settings: sluice.DefaultSettings(),
		jobs: make(map[sluice.ID]*turnsJob), buckets: make(map[string]*turnsBucket),
		limits: make(map[limitsKey]tenancy.Limits), tiers: make(map[string]string),
		tenants: []string{"a-" + id, "b-" + id, "c-" + id, "d-" + id}, tierNames: []string{"basic-" + id, "great-" + id},
	}
	m.settings.MaxRecoveries = 1000
	m.saveSettings()
	m.makeTiers()
	return m
}

// turnsMachine is what is known beside the store. Its instants are virtual, since the beginning; what happens in
// a call happens between the instants before and after it.
type turnsMachine struct {
	*rapid.T
	ctx   context.Context
	bench Bench
	queue string

	begun    time.Time
	advanced time.Duration
	settings sluice.Settings
	version  int64

	order   []sluice.ID // of arrival
	jobs    map[sluice.ID]*turnsJob
	buckets map[string]*turnsBucket // by tenant; that of the queue is turnsQueue
	started []turnsStart            // what claims took; it begins then, for these do not tell

	tenants, tierNames []string
	limits             map[limitsKey]tenancy.Limits
	tiers              map[string]string // of tenants that are stored
}

// limitsKey says whose limits these are, and where they count.
type limitsKey struct{ queue, tier, tenant string }

// turnsStart is how many jobs a claim took, and when at the latest.
type turnsStart struct {
	at   time.Duration
	jobs int
}

// turnsJob is what is known of a job.
type turnsJob struct {
	tenant         string
	state          sluice.State
	token          sluice.Token
	dueLow, dueTop time.Duration // it is due between the two
}

func (j *turnsJob) inFlight() bool {
	return j.state == sluice.StateClaimed || j.state == sluice.StateDispatched
}

func (m *turnsMachine) clock() time.Duration { return time.Since(m.begun) + m.advanced }

func (m *turnsMachine) store(t *rapid.T) sluice.Store {
	if rapid.Bool().Draw(t, "through the other store") {
		return m.bench.Other
	}
	return m.bench.Store
}

func (m *turnsMachine) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatalf("unexpected error: %v", err)
	}
}

// all makes sure that every item of a batch succeeded.
func (m *turnsMachine) all(errs []error, err error) {
	m.Helper()
	m.must(err)
	for _, err := range errs {
		m.must(err)
	}
}

func (m *turnsMachine) act() sluice.Act { return person("turns") }

func (m *turnsMachine) saveSettings() {
	q, err := m.bench.Store.SaveQueue(m.ctx, sluice.Queue{Name: m.queue, Version: m.version, Settings: m.settings}, m.act())
	m.must(err)
	m.version = q.Version
}

func (m *turnsMachine) advance(t *rapid.T) {
	m.pass(time.Duration(rapid.SampledFrom([]int{1, 3, 7, 30}).Draw(t, "minutes")) * minute)
}

func (m *turnsMachine) pass(d time.Duration) {
	m.bench.Advance(d)
	m.advanced += d
}

func (m *turnsMachine) enqueue(t *rapid.T) {
	tenant := rapid.SampledFrom(append([]string{""}, m.tenants...)).Draw(t, "tenant")
	n := rapid.IntRange(1, 4).Draw(t, "jobs")
	delay := time.Duration(rapid.SampledFrom([]int{0, 0, 0, 2, 20}).Draw(t, "delay in minutes")) * minute
	m.put(m.store(t), tenant, n, delay, rapid.IntRange(4, 6).Draw(t, "priority"), rapid.Bool().Draw(t, "taken to be by tenant"))
}

// put enqueues jobs of a tenant.
func (m *turnsMachine) put(store sluice.Store, tenant string, n int, delay time.Duration, priority int, byTenant bool) {
	before := m.clock()
	inserts := make([]sluice.Insert, n)
	for i := range inserts {
		inserts[i] = insertOf(sluice.EnqueueOptions{Tenant: tenant, Delay: delay, Priority: priority})
		inserts[i].Queue, inserts[i].ByTenant = m.queue, byTenant // it need not be right
	}
	_, err := store.Enqueue(m.ctx, inserts)
	m.must(err)
	for _, insert := range inserts {
		m.order = append(m.order, insert.ID)
		m.jobs[insert.ID] = &turnsJob{tenant: tenant, state: sluice.StateQueued, dueLow: before + delay, dueTop: m.clock() + delay}
	}
}

// pick draws one of the jobs for which something holds.
func (m *turnsMachine) pick(t *rapid.T, holds func(*turnsJob) bool) (sluice.ID, *turnsJob) {
	var ids []sluice.ID
	for _, id := range m.order {
		if holds(m.jobs[id]) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		t.Skip("there is no such job")
	}
	id := ids[rapid.IntRange(0, len(ids)-1).Draw(t, "job")]
	return id, m.jobs[id]
}

func (m *turnsMachine) settle(t *rapid.T) {
	id, job := m.pick(t, (*turnsJob).inFlight)
	event := rapid.SampledFrom([]sluice.Event{
		sluice.EventComplete, sluice.EventComplete, sluice.EventRetry, sluice.EventRelease, sluice.EventBury, sluice.EventDispatch, sluice.EventDoubt,
	}).Draw(t, "event")
	move := sluice.MoveOf(event)
	if !move.Allows(job.state) {
		t.Skip("it is dispatched")
	}
	delay := time.Duration(rapid.SampledFrom([]int{0, 5}).Draw(t, "delay in minutes")) * minute
	before := m.clock()
	m.all(m.store(t).Settle(m.ctx, []sluice.Settlement{{ID: id, Token: job.token, Event: event, Delay: delay, Error: "failed"}}))
	job.state = move.To
	if event == sluice.EventRetry || event == sluice.EventRelease && delay > 0 {
		job.dueLow, job.dueTop = before+delay, m.clock()+delay
	}
}

// changeMinds cancels, requeues or reschedules a job.
func (m *turnsMachine) changeMinds(t *rapid.T) {
	id, job := m.pick(t, func(j *turnsJob) bool { return j.state != sluice.StateCompleted })
	ids, before := []sluice.ID{id}, m.clock()
	switch {
	case sluice.MoveOf(sluice.EventRequeue).Allows(job.state):
		m.all(m.store(t).Requeue(m.ctx, ids, m.act()))
		job.state, job.dueLow, job.dueTop = sluice.StateQueued, before, m.clock()
	case job.state == sluice.StateQueued && rapid.Bool().Draw(t, "reschedule"):
		in := time.Duration(rapid.SampledFrom([]int{0, 10}).Draw(t, "due in minutes")) * minute
		var at time.Time
		if in > 0 {
			at = m.bench.Now().Add(in)
		}
		m.all(m.store(t).Reschedule(m.ctx, ids, at, m.act()))
		job.dueLow, job.dueTop = before+in, m.clock()+in
	default:
		m.all(m.store(t).Cancel(m.ctx, ids, m.act()))
		job.state = sluice.StateCancelled
	}
}

func (m *turnsMachine) recover(t *rapid.T) {
	_, err := m.store(t).Recover(m.ctx, m.queue, 1000, "upkeep")
	m.must(err)
	for id, job := range m.jobs {
		if job.state == sluice.StateClaimed {
			now, err := m.bench.Store.Job(m.ctx, id)
			m.must(err)
			job.state = now.State
		}
	}
}

// claim claims until nothing more may be claimed now, or as much as was asked for.
func (m *turnsMachine) claim(t *rapid.T) {
	m.claimUpTo(m.store(t), rapid.IntRange(1, 6).Draw(t, "limit"))
}

func (m *turnsMachine) claimUpTo(store sluice.Store, limit int) (got []*sluice.Claim) {
	var last sluice.Claimed
	var before time.Duration
	for range 30 {
		if m.bench.Refresh != nil {
			m.bench.Refresh()
		}
		request := sluice.ClaimRequest{Queue: m.queue, Limit: limit - len(got), Holder: holder(1), Lease: 10 * minute, Token: sluice.NewToken()}
		before = m.clock()
		claimed, err := store.Claim(m.ctx, request)
		m.must(err)
		m.checkClaimed(claimed.Jobs, request, before)
		if got = append(got, claimed.Jobs...); len(got) == limit {
			return got
		}
		last = claimed
		if len(claimed.Jobs) > 0 {
			continue
		}
		if claimed.NextDue < 0 || claimed.NextDue > 10*time.Millisecond {
			m.checkNothingLeft(before, last)
			return got
		}
		time.Sleep(claimed.NextDue)
	}
	m.Fatalf("30 claims one after the other; the last one found nothing and says to look again in %s", last.NextDue)
	return nil
}

// finish opens what is shut, lets time pass, and looks that every job is claimed.
func (m *turnsMachine) finish(t *rapid.T) {
	m.openUp(rapid.Bool().Draw(t, "without limits"))
	fruitless := 0
	for {
		m.endAll()
		if !slices.ContainsFunc(m.order, func(id sluice.ID) bool { return m.jobs[id].state == sluice.StateQueued }) {
			return
		}
		if len(m.claimUpTo(m.bench.Store, 10)) > 0 {
			fruitless = 0
			continue
		}
		if fruitless++; fruitless > 2 {
			m.Fatalf("jobs are stuck: %s", m.waiting())
		}
		m.pass(time.Hour)
	}
}

// endAll completes what is in flight.
func (m *turnsMachine) endAll() {
	var settlements []sluice.Settlement
	for _, id := range m.order {
		if job := m.jobs[id]; job.inFlight() {
			settlements = append(settlements, sluice.Settlement{ID: id, Token: job.token, Event: sluice.EventComplete})
			job.state = sluice.StateCompleted
		}
	}
	if len(settlements) > 0 {
		m.all(m.bench.Other.Settle(m.ctx, settlements))
	}
}

// share looks that tenants with constant work and equal weights get equal shares, whatever was before.
func (m *turnsMachine) share(t *rapid.T) {
	m.forgetAll()
	m.settings = sluice.DefaultSettings()
	m.settings.Fair = true
	m.saveSettings()
	const each = 20
	for _, tenant := range m.tenants {
		m.put(m.bench.Store, tenant, 2*each, 0, 5, true)
	}
	limit := rapid.IntRange(1, 12).Draw(t, "limit of each claim")
	got, claims := make(map[string]int), 0
	for claims < each*len(m.tenants) {
		jobs := m.claimUpTo(m.bench.Store, min(limit, each*len(m.tenants)-claims))
		if len(jobs) == 0 {
			m.Fatalf("nothing was claimed, although every tenant has jobs; %s", m.waiting())
		}
		for _, c := range jobs {
			got[c.Tenant]++
		}
		claims += len(jobs)
	}
	for _, tenant := range m.tenants {
		if n := got[tenant]; n < each*9/10 || n > each*11/10 {
			m.Fatalf("tenant %s got %d of %d jobs, want about %d: %v", tenant, n, claims, each, got)
		}
	}
	m.endAll()
}
