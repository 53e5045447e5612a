package storetest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
)

// Model compares a store with a model of the state machine: random sequences of verbs by several
// holders, with time passing, must have the same answers and lead to the same jobs. A failure is
// shrunk to a short sequence and printed. The flag -rapid.checks says how many sequences.
func Model(t *testing.T, open func(t *testing.T) Bench) {
	t.Helper()
	check := NewModel(t.Context(), open(t))
	rapid.Check(t, check)
}

// NewModel gives the property that Model checks, for a bench. Each run of it has a queue of its own.
func NewModel(ctx context.Context, bench Bench) func(*rapid.T) {
	return func(t *rapid.T) {
		m := newMachine(ctx, t, bench)
		defer m.dropSchedules()
		m.saveSettings()
		m.openBatches()
		if bench.Follow != nil {
			bench.Follow(m.queue)
		}
		t.Repeat(map[string]func(*rapid.T){
			"enqueue":    m.enqueue,
			"claim":      m.claim,
			"intend":     m.intend,
			"dispatches": m.dispatches,
			"settle":     m.settle,
			"renew":      m.renew,
			"cancel":     m.cancel,
			"requeue":    m.requeue,
			"undo":       m.undo,
			"resolve":    m.resolve,
			"reschedule": m.reschedule,
			"edit":       m.edit,
			"hold":       m.hold,
			"release":    m.release,
			"close":      m.closeBatch,
			"complete":   m.advanceBatches,
			"start flow": m.startFlow,
			"flows":      m.workOnFlows,
			"recover":    m.recover,
			"expire":     m.expire,
			"forget":     m.forget,
			"terminate":  m.terminate,
			"advance":    m.advance,
			"pause":      m.pause,
			"share":      m.share,
			"close key":  m.closeKey,

			"set schedule":    m.setSchedule,
			"fire schedules":  m.fireSchedules,
			"trigger":         m.trigger,
			"pause schedule":  m.pauseSchedule,
			"delete schedule": m.deleteSchedule,
			"delete queue":    m.deleteQueue,

			"": m.agree,
		})
	}
}

func newMachine(ctx context.Context, t *rapid.T, bench Bench) *machine {
	m := &machine{
		T: t, ctx: ctx, bench: bench, queue: "model-" + sluice.NewID().String(),
		jobs: make(map[sluice.ID]*modelJob), settings: sluice.DefaultSettings(), schedules: make(map[string]bool), closedKeys: make(map[string]time.Duration),
	}
	m.settings.MaxRecoveries = 2
	return m
}

// machine is the model beside the store.
type machine struct {
	*rapid.T
	ctx      context.Context
	bench    Bench
	queue    string
	plain    bool // jobs have no key, run after no other, and are in no batch or flow
	settings sluice.Settings
	version  int64
	limit    limit.Limit // which the queue shares if its settings say so

	closedKeys map[string]time.Duration // limit keys that are closed, until when
	passes     []pass                   // of time, which the store's clock did not see

	now    time.Duration // virtual, since the beginning
	order  []sluice.ID   // of arrival
	jobs   map[sluice.ID]*modelJob
	claims []modelClaim // every claim that was ever made, so that old tokens are tried too
	picked *modelClaim  // the one that the next verbs are about; nil: they draw one
	strays []modelStray // runs of jobs that have ended, which may be open

	schedules map[string]bool // names of the stored ones
	batches   []*modelBatch   // the second is in the first
	flows     []*modelFlow
}

// modelJob is what the model knows of a job.
type modelJob struct {
	seq        int
	priority   int
	key        string
	tenant     string
	due        time.Duration
	expires    time.Duration // 0: never
	state      sluice.State
	generation int
	attempts   int
	releases   int
	recoveries int
	token      sluice.Token // of the present or the last claim
	lease      time.Duration
	ref        string
	engine     string
	blockedBy  sluice.ID
	holdsKey   bool
	before     *modelJob // the life that a requeue of a finished job left
	held       bool
	behind     sluice.ID // what a held job waited for when its hold began

	batch sluice.ID

	limitKey string
	cost     int

	orderKey      string
	atFirst       sluice.ID   // what it would have waited for at its enqueue if nobody had held it
	after, rest   []sluice.ID // what it runs after, and what it still waits for of that
	afterFailure  sluice.AfterFailure
	afterFailures map[sluice.ID]sluice.AfterFailure // rules for single ones
}

type modelClaim struct {
	id    sluice.ID
	token sluice.Token
}

// tick makes each verb happen a little later than the one before, as it does in the store.
func (m *machine) tick() { m.now += time.Microsecond }

const minute = time.Minute

func (m *machine) store(t *rapid.T) sluice.Store {
	if rapid.Bool().Draw(t, "through the other store") {
		return m.bench.Other
	}
	return m.bench.Store
}

func (m *machine) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatalf("unexpected error: %v", err)
	}
}

// agreeOn makes sure that the store's answer about one job is the model's.
func (m *machine) agreeOn(verb string, got, want error) {
	m.Helper()
	if want == nil && got == nil || want != nil && errors.Is(got, want) {
		return
	}
	m.Fatalf("%s: the store says %v, the model %v", verb, got, want)
}

func (m *machine) enqueue(t *rapid.T) {
	m.tick()
	options := sluice.EnqueueOptions{
		ID:       sluice.NewID(),
		Priority: rapid.IntRange(4, 6).Draw(t, "priority"),
		Delay:    time.Duration(rapid.SampledFrom([]int{0, 0, 0, 3, 20}).Draw(t, "delay in minutes")) * minute,
		Key:      rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "key"),
	}
	if expires := rapid.SampledFrom([]int{0, 0, 0, 30}).Draw(t, "expires in minutes"); expires > 0 {
		options.ExpiresAt = m.bench.Now().Add(time.Duration(expires) * minute)
	}
	if options.Key != "" {
		options.OnDuplicate = rapid.SampledFrom([]sluice.OnDuplicate{sluice.Keep, sluice.Replace, sluice.Coalesce, sluice.Debounce}).Draw(t, "on duplicate")
		options.Tenant = rapid.SampledFrom([]string{"acme", "acme", "acme", "bolt"}).Draw(t, "tenant of the key")
	}
	drawLimited(t, &options)
	if m.settings.Fair {
		options.Tenant = rapid.SampledFrom([]string{"acme", "bolt", "corp"}).Draw(t, "tenant")
	}
	if m.plain {
		options.Key, options.OnDuplicate = "", ""
		options.OrderKey = rapid.SampledFrom([]string{"", "", "", "x"}).Draw(t, "order key")
	} else {
		m.drawOrder(t, &options)
	}
	options.Hold = rapid.SampledFrom([]string{"", "", "", "", "on probation"}).Draw(t, "hold")
	var open bool
	if open = true; !m.plain {
		options.Batch, open = m.drawBatch(t)
	}
	insert := insertOf(options)
	insert.Queue = m.queue
	got, err := m.store(t).Enqueue(m.ctx, []sluice.Insert{insert})
	if !open {
		m.agreeOnRefusal(err)
		return
	}
	if m.refusesByKey(options) {
		m.agreeOn("enqueue", err, sluice.ErrInvalid)
		return
	}
	m.must(err)
	if want := m.modelEnqueue(options); got[0] != want {
		m.Fatalf("enqueue: receipt %+v, want %+v", got[0], want)
	}
}

func (m *machine) modelEnqueue(o sluice.EnqueueOptions) sluice.Receipt {
	job := &modelJob{seq: len(m.order), priority: o.Priority, key: o.Key, tenant: o.Tenant, due: m.now + o.Delay, state: sluice.StateQueued, generation: 1, holdsKey: o.Key != ""}
	job.orderKey, job.after, job.rest, job.afterFailure = o.OrderKey, o.After, slices.Clone(o.After), o.AfterFailure
	job.afterFailures, job.batch, job.limitKey, job.cost = o.AfterFailures, o.Batch, o.LimitKey, o.Cost
	if !o.ExpiresAt.IsZero() {
		job.expires = m.now + 30*minute
	}
	receipt := sluice.Receipt{ID: o.ID}
	if twinID, twin := m.keyHolder(o.Key); twin != nil {
		waits := twin.state == sluice.StateQueued
		switch {
		case o.OnDuplicate == sluice.Replace && waits:
			if behind := m.jobs[twin.waitsFor()]; behind != nil && behind.key == o.Key {
				job.blockedBy = twin.waitsFor()
			}
			twin.holdsKey = false
			m.end(twinID, sluice.StateCancelled)
			receipt.Replaced = twinID
		case (o.OnDuplicate == sluice.Coalesce || o.OnDuplicate == sluice.Debounce) && (!waits || twin.attempts+twin.releases+twin.recoveries > 0):
			job.blockedBy, twin.holdsKey = twinID, false
		case o.OnDuplicate == sluice.Debounce:
			if twin.due = m.now + o.Delay; twin.generation == 1 {
				twin.expires = job.expires
			}
			return sluice.Receipt{ID: twinID, Duplicate: true}
		default:
			if o.OnDuplicate == sluice.Coalesce && twin.generation == 1 && (job.expires == 0 || job.expires > twin.due) {
				twin.expires = job.expires
			}
			return sluice.Receipt{ID: twinID, Duplicate: true}
		}
	}
	m.order = append(m.order, o.ID)
	m.jobs[o.ID] = job
	holder := job.blockedBy
	if m.look(o.ID); o.Hold != "" && !job.state.Finished() {
		m.holdNew(o.ID, holder)
	}
	return receipt
}

// end finishes a job: its key goes back to the job it waited for, or is free, and the job behind it
// may go.
func (m *machine) end(id sluice.ID, outcome sluice.State) {
	job := m.jobs[id]
	job.state = outcome
	if blocker := m.jobs[job.waitsFor()]; job.holdsKey && blocker != nil && !blocker.state.Finished() && blocker.key == job.key {
		blocker.holdsKey = true
	}
	job.holdsKey, job.blockedBy, job.held = false, sluice.ID{}, false
	m.letGo(id)
}

func (m *machine) claim(t *rapid.T) {
	m.tick()
	request := sluice.ClaimRequest{
		Queue: m.queue, Limit: rapid.IntRange(1, 4).Draw(t, "limit"), Holder: holder(rapid.IntRange(1, 3).Draw(t, "holder")),
		Lease: 150 * time.Second, Token: sluice.NewToken(),
		ClaimAhead: time.Duration(rapid.SampledFrom([]int{0, 0, 0, 4}).Draw(t, "lead in minutes")) * minute,
	}
	claimable := m.claimable(request.ClaimAhead)
	if m.bench.Refresh != nil {
		m.bench.Refresh()
	}
	claimed, err := m.store(t).Claim(m.ctx, request)
	m.must(err)
	var got []sluice.ID
	for _, c := range claimed.Jobs {
		got = append(got, c.ID)
	}
	m.agreeOnClaim(claimed, got, claimable, m.room(request.Limit))
	for _, c := range claimed.Jobs {
		job := m.jobs[c.ID]
		if c.Attempts != job.attempts || c.Generation != job.generation {
			m.Fatalf("claim of %s brings attempts %d and generation %d, want %d and %d", c.ID, c.Attempts, c.Generation, job.attempts, job.generation)
		}
		job.state, job.token, job.lease = sluice.StateClaimed, request.Token, m.now+request.Lease
		m.claims = append(m.claims, modelClaim{c.ID, request.Token})
	}
	m.agreeOnNextDue(claimed, request)
	m.agreeOnTurns(claimed, request)
}

// claimable lists the jobs that may be claimed, in order.
func (m *machine) claimable(lead time.Duration) []sluice.ID {
	if m.settings.Paused {
		return nil
	}
	var ids []sluice.ID
	for id, j := range m.jobs {
		if j.state == sluice.StateQueued && j.due <= m.now+lead && j.blockedBy.IsZero() && (j.expires == 0 || j.expires > max(m.now, j.due)) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b sluice.ID) int {
		x, y := m.jobs[a], m.jobs[b]
		return cmp.Or(cmp.Compare(x.priority, y.priority), cmp.Compare(x.due, y.due), cmp.Compare(x.seq, y.seq))
	})
	return ids
}

// settle settles any claim that was ever made, by any event.
func (m *machine) settle(t *rapid.T) {
	if len(m.claims) == 0 {
		t.Skip("nothing was claimed")
	}
	m.tick()
	claim := m.pickClaim(t)
	event := rapid.SampledFrom([]sluice.Event{sluice.EventComplete, sluice.EventRetry, sluice.EventRelease, sluice.EventRecover, sluice.EventBury, sluice.EventDispatch, sluice.EventDoubt}).Draw(t, "event")
	delay := time.Duration(rapid.SampledFrom([]int{0, 5}).Draw(t, "delay in minutes")) * minute
	s := sluice.Settlement{ID: claim.id, Token: claim.token, Event: event, Delay: delay, Error: "failed", Poison: rapid.Bool().Draw(t, "poison")}
	s.Result = m.resultOf(s)
	errs, err := m.store(t).Settle(m.ctx, []sluice.Settlement{s})
	m.must(err)
	before := m.jobs[s.ID].state
	want := m.modelSettle(s)
	m.agreeOn(string(event), errs[0], want)
	if want == nil && before != sluice.StateCompleted {
		m.noteResult(s)
	}
}

func (m *machine) modelSettle(s sluice.Settlement) error {
	job := m.jobs[s.ID]
	move := sluice.MoveOf(s.Event)
	switch {
	case job.token != s.Token:
		return sluice.ErrLost
	case job.state == move.To:
		return nil // settled so before
	case !move.Allows(job.state) && (job.state.Finished() || job.state == sluice.StateQueued):
		return sluice.ErrLost
	case !move.Allows(job.state):
		return sluice.ErrNotAllowed
	}
	from := job.state
	switch s.Event {
	case sluice.EventRetry:
		job.attempts++
		job.due = m.now + s.Delay
	case sluice.EventRelease:
		job.releases++
		if s.Delay > 0 {
			job.due = m.now + s.Delay
		}
	case sluice.EventRecover:
		job.recoveries++
	case sluice.EventBury:
		if s.Poison {
			m.noteStray(s.ID)
			job.recoveries++
		} else if from != sluice.StateUncertain {
			job.attempts++
		}
	}
	if move.To == sluice.StateQueued {
		job.forgetRun()
	}
	if move.To.Finished() {
		m.end(s.ID, move.To)
	}
	job.state = move.To
	return nil
}

func (m *machine) renew(t *rapid.T) {
	if len(m.claims) == 0 {
		t.Skip("nothing was claimed")
	}
	m.tick()
	claim := m.pickClaim(t)
	lost, err := m.store(t).Renew(m.ctx, []sluice.Renewal{{ID: claim.id, Token: claim.token, Lease: 150 * time.Second}})
	m.must(err)
	job := m.jobs[claim.id]
	held := job.state == sluice.StateClaimed && job.token == claim.token
	if held != (len(lost) == 0) {
		m.Fatalf("renew: lost %v, want held to be %v", lost, held)
	}
	if held && job.lease < m.now+100*time.Second {
		job.lease = m.now + 150*time.Second
	}
}

// pickClaim draws one of the claims, the latest ones more often.
func (m *machine) pickClaim(t *rapid.T) modelClaim {
	if m.picked != nil {
		return *m.picked
	}
	back := rapid.IntRange(0, len(m.claims)-1).Draw(t, "claim, counted from the last")
	return m.claims[len(m.claims)-1-back]
}

func (m *machine) pickJob(t *rapid.T) (sluice.ID, *modelJob) {
	if m.picked != nil {
		return m.picked.id, m.jobs[m.picked.id]
	}
	if len(m.order) == 0 {
		t.Skip("there are no jobs")
	}
	id := m.order[rapid.IntRange(0, len(m.order)-1).Draw(t, "job")]
	return id, m.jobs[id]
}

func (m *machine) cancel(t *rapid.T) {
	id, job := m.pickJob(t)
	m.tick()
	errs, err := m.store(t).Cancel(m.ctx, []sluice.ID{id}, person("model"))
	m.must(err)
	if !sluice.MoveOf(sluice.EventCancel).Allows(job.state) {
		m.agreeOn("cancel", errs[0], sluice.ErrNotAllowed)
		return
	}
	m.agreeOn("cancel", errs[0], nil)
	m.noteStray(id)
	m.end(id, sluice.StateCancelled)
}

func (m *machine) resolve(t *rapid.T) {
	id, job := m.pickJob(t)
	outcome := rapid.SampledFrom([]sluice.State{sluice.StateCompleted, sluice.StateDead}).Draw(t, "outcome")
	m.tick()
	errs, err := m.store(t).Resolve(m.ctx, []sluice.ID{id}, outcome, person("model"))
	m.must(err)
	if job.state != sluice.StateUncertain {
		m.agreeOn("resolve", errs[0], sluice.ErrNotAllowed)
		return
	}
	m.agreeOn("resolve", errs[0], nil)
	m.end(id, outcome)
}

func (m *machine) reschedule(t *rapid.T) {
	id, job := m.pickJob(t)
	m.tick()
	in := time.Duration(rapid.SampledFrom([]int{0, 10}).Draw(t, "due in minutes")) * minute
	var at time.Time
	if in > 0 {
		at = m.bench.Now().Add(in)
	}
	errs, err := m.store(t).Reschedule(m.ctx, []sluice.ID{id}, at, person("model"))
	m.must(err)
	if job.state != sluice.StateQueued {
		m.agreeOn("reschedule", errs[0], sluice.ErrNotAllowed)
		return
	}
	if job.expires > 0 && m.now+in >= job.expires {
		m.agreeOn("reschedule", errs[0], sluice.ErrInvalid)
		return
	}
	m.agreeOn("reschedule", errs[0], nil)
	job.due = m.now + in
}

func (m *machine) recover(t *rapid.T) {
	m.tick()
	got, err := m.store(t).Recover(m.ctx, m.queue, 1000, "upkeep")
	m.must(err)
	var want sluice.Recovered
	for id, j := range m.jobs {
		if j.state != sluice.StateClaimed || j.lease >= m.now || j.engine != "" {
			continue
		}
		j.recoveries++
		if j.recoveries >= m.settings.MaxRecoveries {
			want.Buried++
			m.end(id, sluice.StateDead)
		} else {
			want.Requeued++
			j.state = sluice.StateQueued
		}
	}
	if got != want {
		m.Fatalf("recovered %+v, want %+v", got, want)
	}
}
