package storetest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/limit"
)

// replayed is a full audit that is read once more from its beginning: who was in flight, under which limit.
type replayed struct {
	tester
	ctx    context.Context
	store  sluice.Store
	name   string // of the limit
	passes []pass
	alone  bool // one call followed the other: nobody closed a key in the middle of a claim

	limit    limit.Limit
	sharing  map[string]bool // queues whose settings name the limit
	closed   map[string]time.Time
	jobs     map[sluice.ID]sluice.Job
	inFlight map[sluice.ID]bool
	buckets  map[string]*replayedBucket
	claims   int
}

// tester is a test, or a run of a property.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// pass is time that passed for the store without its clock: after the entry with the number.
type pass struct {
	seq int64
	by  time.Duration
}

// replayedBucket has at most so many tokens, since an instant. Rates and bursts that counted since then count all.
type replayedBucket struct {
	tokens       float64
	at           time.Time
	rate, fullAt float64 // tokens per second; the largest burst
}

// KeepsLimit replays the full audit of queues and proves that no claim broke a limit that they share: no limit key, or all jobs
// together, ever had more in flight than the concurrency, and no claim took more than the bucket of the rate held. It returns the
// number of claims under the limit.
func KeepsLimit(ctx context.Context, t tester, store sluice.Store, name string, queues ...string) (claims int) {
	t.Helper()
	return newReplayed(ctx, t, store, name).replay(queues...)
}

func newReplayed(ctx context.Context, t tester, store sluice.Store, name string) *replayed {
	return &replayed{
		tester: t, ctx: ctx, store: store, name: name, sharing: make(map[string]bool), closed: make(map[string]time.Time),
		jobs: make(map[sluice.ID]sluice.Job), inFlight: make(map[sluice.ID]bool), buckets: make(map[string]*replayedBucket),
	}
}

func (r *replayed) replay(queues ...string) int {
	r.Helper()
	entries := r.read(audit.ObjectLimit, r.name)
	for _, queue := range queues {
		entries = slices.Concat(entries, r.read(audit.ObjectQueue, queue), r.read(audit.ObjectJob, queue))
	}
	slices.SortFunc(entries, func(a, b sluice.AuditEntry) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, e := range slices.Backward(entries) { // until each job is as it was enqueued
		r.edited(e, e.Before)
	}
	for _, e := range entries {
		switch e.Object {
		case audit.ObjectLimit:
			r.limitChanged(e)
		case audit.ObjectQueue:
			r.queueChanged(e)
		default:
			r.moved(e)
		}
	}
	return r.claims
}

// read reads all entries about an object.
func (r *replayed) read(object sluice.Object, name string) (all []sluice.AuditEntry) {
	r.Helper()
	const page = 10_000
	filter := sluice.AuditFilter{Object: object, Name: name, Limit: page}
	for {
		entries, err := r.store.Audit(r.ctx, filter)
		if err != nil {
			r.Fatalf("audit of %s %s: %v", object, name, err)
		}
		if all = append(all, entries...); len(entries) < page {
			return all
		}
		filter.Before = entries[page-1].Seq
	}
}

func (r *replayed) limitChanged(e sluice.AuditEntry) {
	r.Helper()
	switch e.Event {
	case audit.EventChange:
		r.limit = limit.Limit{Name: r.name}
		r.decode(e, &r.limit)
		for _, b := range r.buckets {
			b.seen(r.limit)
		}
	case audit.EventCloseKey, audit.EventOpenKey:
		var key struct {
			Key   string    `json:"key"`
			Until time.Time `json:"until"`
		}
		r.decode(e, &key)
		delete(r.closed, key.Key)
		if !key.Until.IsZero() {
			r.closed[key.Key] = key.Until.Add(r.passedBefore(e))
		}
	}
}

func (r *replayed) queueChanged(e sluice.AuditEntry) {
	r.Helper()
	if e.Event != audit.EventChange {
		return
	}
	var settings struct {
		Limits string `json:"limits"`
	}
	r.decode(e, &settings)
	r.sharing[e.Name] = slices.Contains(limit.Names(settings.Limits), r.name)
}

func (r *replayed) decode(e sluice.AuditEntry, into any) {
	r.Helper()
	if err := json.Unmarshal(e.After, into); err != nil {
		r.Fatalf("entry %d about %s %s has %s: %v", e.Seq, e.Object, e.Name, e.After, err)
	}
}

// moved takes a job into flight or out of it.
func (r *replayed) moved(e sluice.AuditEntry) {
	r.Helper()
	r.edited(e, e.After)
	switch to := sluice.MoveOf(e.Event).To; {
	case to == "": // such as an edit
	case e.Event == sluice.EventClaim:
		if r.inFlight[e.JobID] = true; r.sharing[e.Name] {
			r.judge(e)
		}
	case e.To != sluice.StateDispatched:
		delete(r.inFlight, e.JobID)
	}
}

// edited gives a job the limit key and the cost of one side of an edit.
func (r *replayed) edited(e sluice.AuditEntry, side json.RawMessage) {
	r.Helper()
	if e.Event != audit.EventEdit {
		return
	}
	job := r.job(e.JobID)
	given := struct {
		LimitKey *string `json:"limit_key"`
		Cost     *int    `json:"cost"`
	}{&job.LimitKey, &job.Cost}
	if err := json.Unmarshal(side, &given); err != nil {
		r.Fatalf("entry %d edits a job and has %s: %v", e.Seq, side, err)
	}
	r.jobs[e.JobID] = job
}

// judge looks at a claim by the limit as it was then.
func (r *replayed) judge(e sluice.AuditEntry) {
	r.Helper()
	job := r.job(e.JobID)
	if r.claims++; r.limit.PerKey && job.LimitKey == "" {
		return
	}
	key := r.keyOf(job)
	at := e.At.Add(r.passedBefore(e))
	switch {
	case !r.alone:
	case r.limit.Closed && r.limit.ClosedUntil.IsZero():
		r.Fatalf("entry %d claims job %s while the limit is closed", e.Seq, e.JobID)
	case r.limit.PerKey && r.closed[key].After(at):
		r.Fatalf("entry %d claims job %s at %s; its limit key %q is closed until %s", e.Seq, e.JobID, at, key, r.closed[key])
	}
	units, jobs := 0, 0
	for id := range r.inFlight {
		if other := r.job(id); r.sharing[other.Queue] && r.keyOf(other) == key {
			units, jobs = units+r.unitsOf(other), jobs+1
		}
	}
	if most := r.limit.Concurrency; most > 0 && units > most && jobs > 1 {
		r.Fatalf("after entry %d, %d jobs of limit key %q with %d units are in flight, and %s allows %d", e.Seq, jobs, key, units, r.name, most)
	}
	if (r.limit.PerKey || r.limit.ByCost) && !r.limit.Rate.IsZero() {
		r.take(e, at, key, r.unitsOf(job))
	}
}

// take takes the units of a claim out of the bucket of its limit key.
func (r *replayed) take(e sluice.AuditEntry, at time.Time, key string, units int) {
	r.Helper()
	b := r.buckets[key]
	if b == nil {
		b = &replayedBucket{tokens: math.Inf(1), at: at}
		r.buckets[key] = b
	}
	b.seen(r.limit)
	b.tokens = min(b.fullAt, b.tokens+b.rate*at.Sub(b.at).Seconds())
	// A claim reads the clock a moment before it writes its entry, and may begin a moment after.
	if slack := b.rate*0.1 + 1e-6; b.tokens+slack < min(float64(units), b.fullAt) {
		r.Fatalf("entry %d claims job %s of limit key %q with %d units at %s, for which %s has %.3f tokens", e.Seq, e.JobID, key, units, at, r.limit, b.tokens)
	}
	*b = replayedBucket{tokens: b.tokens - float64(units), at: at}
	b.seen(r.limit)
}

// seen notes figures that count for a bucket.
func (b *replayedBucket) seen(of limit.Limit) {
	b.rate = max(b.rate, of.Rate.PerSecond())
	jobs := float64(of.Rate.Jobs)
	atOnce := max(1, math.Floor(max(jobs/50, of.Rate.PerSecond()/10)), float64(of.Burst)) // the jobs of 0.1 s, or 1/50
	b.fullAt = max(b.fullAt, min(atOnce, max(jobs, float64(of.Burst))))
}

func (r *replayed) keyOf(job sluice.Job) string {
	if r.limit.PerKey {
		return job.LimitKey
	}
	return ""
}

func (r *replayed) unitsOf(job sluice.Job) int {
	if r.limit.ByCost {
		return max(job.Cost, 1)
	}
	return 1
}

// job returns a job as it was at the entry that is read.
func (r *replayed) job(id sluice.ID) sluice.Job {
	r.Helper()
	job, known := r.jobs[id]
	if !known {
		var err error
		if job, err = r.store.Job(r.ctx, id); err != nil && !errors.Is(err, sluice.ErrNotFound) {
			r.Fatalf("job %s: %v", id, err)
		}
		r.jobs[id] = job
	}
	return job
}

// passedBefore returns how much time had passed before an entry without the clock.
func (r *replayed) passedBefore(e sluice.AuditEntry) (passed time.Duration) {
	for _, p := range r.passes {
		if p.seq < e.Seq {
			passed += p.by
		}
	}
	return passed
}

// pass lets time pass, and notes how much of it the store's clock does not see.
func (m *machine) pass(d time.Duration) {
	before := m.bench.Now()
	m.bench.Advance(d)
	p := pass{by: d - m.bench.Now().Sub(before).Truncate(minute)}
	if p.by == 0 {
		return
	}
	newest, err := m.bench.Store.Audit(m.ctx, sluice.AuditFilter{Limit: 1})
	m.must(err)
	if len(newest) > 0 {
		p.seq = newest[0].Seq
	}
	m.passes = append(m.passes, p)
}

func (m *machine) advance(t *rapid.T) {
	d := time.Duration(rapid.SampledFrom([]int{1, 4, 15}).Draw(t, "minutes")) * minute
	m.pass(d)
	m.now += d
}

// replay proves from the audit that no claim broke the limit of the queue.
func (m *machine) replay() {
	r := newReplayed(m.ctx, m, m.bench.Store, m.queue)
	r.passes, r.alone = m.passes, true
	r.replay(m.queue)
}
