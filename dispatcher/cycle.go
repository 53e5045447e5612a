package dispatcher

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/step"
)

// Cycle counts the results of one cycle.
type Cycle struct {
	// Claimed is how many jobs were taken from the queue.
	Claimed int `json:"claimed"`
	// Dispatched jobs have a run at their engine. Buried jobs were refused by the engine for good. Released
	// jobs wait again, because the engine started nothing.
	Dispatched int `json:"dispatched"`
	Buried     int `json:"buried"`
	Released   int `json:"released"`
	// Held jobs are kept, because their runs may or may not have started; a later cycle asks again.
	Held int `json:"held"`
	// Took is the duration of the cycle. Claiming is the part in which the store gave jobs out and recorded their runs,
	// Starting the part in which engines were asked, and Settling the part in which the store took the outcomes. A
	// dispatcher claims the next jobs while an engine starts others, so the parts may be more than the whole.
	Took     time.Duration `json:"took"`
	Claiming time.Duration `json:"claiming"`
	Starting time.Duration `json:"starting"`
	Settling time.Duration `json:"settling"`
}

// busyDelay is how long a job waits after its engine had no room.
const busyDelay = time.Second

// lonelyMax is the longest wait of a job whose run could not be requested, although the engine answered for
// others.
const lonelyMax = time.Minute

// cycle claims due jobs, has their runs started, and settles the jobs. First, it asks again for runs whose
// start is in doubt. wait is the time until the next cycle. If ahead is set, the dispatcher claims the next
// batch while the engine starts the current one, and leaves that batch to the next cycle. The engine then never
// waits for the store.
func (d *Dispatcher) cycle(ctx, work context.Context, l *servedQueue, q sluice.Queue, ahead bool) (done Cycle, wait time.Duration, err error) {
	l.cycle.Lock()
	defer l.cycle.Unlock()
	l.paused = d.log.EmitPause(q, l.paused)
	begun := time.Now()
	l.claiming, l.starting = 0, 0
	if !l.breaker.asks(begun) {
		return done, time.Until(l.breaker.probeAt), nil
	}
	work, end := step.Begin(work, d.store, step.Step{Name: step.Cycle, Queue: l.queue})
	defer func() { end(step.End{Jobs: done.Claimed, Err: err}) }()
	held, may := d.choose(ctx, work, l, q, ahead)
	if stalled := l.stalled(begun); stalled > 0 {
		held, may, wait = nil, false, stalled
	}
	if may && d.guard(work, l, q) != nil {
		may, wait = false, d.options.Poll
	}
	if d.ear.Quiesced() {
		may, wait = false, max(wait, d.options.Poll)
	}
	ahead = ahead && may && l.breaker.worked && q.Settings.Interval == 0
	done.Claimed, wait, err = d.handOver(work, l, q, held, may, ahead, wait)
	if l.breaker.open() {
		d.handBack(l, "claimed ahead, and the engine cannot be used")
	}
	err = errors.Join(err, d.settle(work, l, &done))
	done.Claiming, done.Starting = l.claiming, l.starting
	done.Held, done.Took = len(l.holding(func(h *hold) bool { return !h.fresh })), time.Since(begun)
	if done.Claimed+len(held) > 0 {
		d.log.Emit(event.CycleDone, l.queue, "claimed", done.Claimed, "dispatched", done.Dispatched,
			"buried", done.Buried, "released", done.Released, "held", done.Held, "duration", done.Took)
	}
	if done.Claimed > 0 {
		d.note(work, l, done)
	}
	if l.breaker.open() {
		wait = time.Until(l.breaker.probeAt)
	} else if done.Held > 0 {
		wait = min(wait, d.options.Poll)
	}
	return done, max(wait, l.stalled(time.Now())), err
}

// choose returns the jobs to ask the engine for in this cycle, and whether more may be claimed. If beside is
// set, jobs whose start is in doubt are asked for outside the cycles. A start that is never answered then
// delays no other.
func (d *Dispatcher) choose(ctx, work context.Context, l *servedQueue, q sluice.Queue, beside bool) (held []*hold, may bool) {
	now := time.Now()
	may = ctx.Err() == nil && d.serves(q)
	if l.breaker.open() {
		l.breaker.probeAt = now.Add(d.options.Probe)
		held, more := l.probe(now)
		ask, err := d.again(work, l, q, held)
		return ask, may && err == nil && (more || len(ask) == 0)
	}
	held = l.fresh()
	if beside {
		d.askBeside(work, l, q)
		return held, may
	}
	ask, err := d.again(work, l, q, l.doubtful(now, ctx.Err() == nil))
	if err != nil {
		d.log.Emit(event.DispatchFailed, l.queue, "what", "look at the engine", "error", err)
	}
	return append(held, ask...), may
}

// handOver has the engine start the held jobs, and further jobs that may be claimed. first is how many jobs the
// engine was asked for the first time.
func (d *Dispatcher) handOver(work context.Context, l *servedQueue, q sluice.Queue, held []*hold, may, ahead bool, wait time.Duration) (first int, _ time.Duration, err error) {
	if !may {
		return d.start(work, l, q, held), wait, nil
	}
	if !ahead || len(held) == 0 {
		first = d.start(work, l, q, held)
		if held, wait, err = d.take(work, l, q, d.limit(l, q)); err != nil {
			return first, wait, err
		}
		ahead = ahead && len(held) == d.limit(l, q)
	}
	if !ahead {
		return first + d.start(work, l, q, held), wait, nil
	}
	limit := d.limit(l, q) // computed now: starts in the meantime may open the breaker
	var next []*hold
	var claiming sync.WaitGroup
	claiming.Go(func() { next, wait, err = d.take(work, l, q, limit) })
	first += d.start(work, l, q, held)
	claiming.Wait()
	if len(next) > 0 {
		wait = 0
	}
	return first, wait, err
}

// limit returns how many jobs of a queue one claim takes.
func (d *Dispatcher) limit(l *servedQueue, q sluice.Queue) int {
	if l.breaker.open() {
		return 1
	}
	return cmp.Or(q.Settings.Batch, d.options.Batch)
}

// take claims due jobs and records the runs that are about to be requested.
func (d *Dispatcher) take(work context.Context, l *servedQueue, q sluice.Queue, limit int) (holds []*hold, wait time.Duration, err error) {
	if !d.ear.Begin() {
		return nil, d.options.Poll, nil
	}
	defer d.ear.End()
	defer addSince(&l.claiming, time.Now())
	// Use work, not ctx: if the answer to a claim is thrown away, its jobs stay locked until the lease ends.
	asked, told := time.Now(), d.begun.Report(l.queue)
	claimed, err := d.store.Claim(work, sluice.ClaimRequest{
		Queue: l.queue, Limit: limit, Holder: d.holder.ID, Lease: q.Settings.Lease, Token: sluice.NewToken(),
		Ageing: q.Settings.Ageing, ClaimAhead: q.Settings.ClaimAhead, Engine: q.Settings.Engine, ReportsBegun: true, Begun: told,
	})
	if err != nil {
		return nil, d.options.Poll, fmt.Errorf("claim: %w", err)
	}
	d.paced(l, told, claimed)
	d.tenants.Saw(q, claimed)
	wait = d.waitFor(claimed, limit)
	if len(claimed.Jobs) == 0 {
		return nil, wait, nil
	}
	d.log.Emit(event.JobsClaimed, l.queue, "jobs", len(claimed.Jobs))
	holds = make([]*hold, len(claimed.Jobs))
	for i, c := range claimed.Jobs {
		holds[i] = &hold{claim: c, run: engine.RunOf(c, q.Settings), lease: q.Settings.Lease, asked: asked, renewed: asked, fresh: true}
	}
	holds, err = d.intend(work, l, q, holds)
	return holds, wait, err
}

// waitFor returns the time until another claim may get jobs.
func (d *Dispatcher) waitFor(claimed sluice.Claimed, limit int) time.Duration {
	switch {
	case len(claimed.Jobs) == limit:
		return 0
	case claimed.NextDue < 0 || claimed.NextDue == 0 && !claimed.Limited:
		return d.options.Poll
	}
	return min(claimed.NextDue, d.options.Poll)
}

// intend records runs in the store before any engine is asked for them. Lost claims are left out.
func (d *Dispatcher) intend(work context.Context, l *servedQueue, q sluice.Queue, holds []*hold) ([]*hold, error) {
	intents := make([]engine.Intent, len(holds))
	for i, h := range holds {
		h.claim.Ref, h.claim.Engine = h.run.Ref, engine.Location(q.Settings)
		intents[i] = engine.Intent{ID: h.claim.ID, Token: h.claim.Token, Ref: h.run.Ref, Engine: h.claim.Engine, Lease: h.lease}
	}
	errs, err := engine.Given(d.store).RecordIntent(work, intents)
	if err != nil {
		// The store may or may not have recorded the runs. No engine was asked, so upkeep finds no run of them.
		d.begun.Gone(holds[0].claim.Token, len(holds))
		return nil, fmt.Errorf("note %d intended runs: %w", len(intents), err)
	}
	kept := holds[:0]
	for i, h := range holds {
		if errs[i] != nil {
			d.begun.Gone(h.claim.Token, 1)
			d.log.EmitJob(event.ClaimLost, h.claim, "reason", "before its run was asked for: "+errs[i].Error())
			continue
		}
		kept = append(kept, h)
	}
	l.hold(kept)
	return kept, nil
}

// settle writes the settlements that are decided. The next cycle retries failed writes.
func (d *Dispatcher) settle(work context.Context, l *servedQueue, done *Cycle) error {
	decided := l.holding(func(h *hold) bool { return h.answer != nil || h.lost != "" })
	var settlements []sluice.Settlement
	var holds []*hold
	for _, h := range decided {
		if h.answer == nil {
			d.countBegun(h)
			l.let(h) // upkeep asks the engine
			d.log.EmitJob(event.ClaimLost, h.claim, "reason", h.lost)
			continue
		}
		settlements, holds = append(settlements, *h.answer), append(holds, h)
	}
	if len(holds) == 0 {
		return nil
	}
	defer addSince(&done.Settling, time.Now())
	errs, err := d.store.Settle(work, settlements)
	if err != nil {
		return fmt.Errorf("settle %d jobs: %w", len(settlements), err)
	}
	for i, h := range holds {
		l.let(h)
		if errs[i] != nil {
			d.log.Emit(event.SettlementRefused, l.queue, "job", h.claim.ID, "event", settlements[i].Event, "error", errs[i])
			continue
		}
		d.logSettled(h, settlements[i])
		done.count(settlements[i].Event)
	}
	return nil
}

// logSettled logs the outcome of a job.
func (d *Dispatcher) logSettled(h *hold, s sluice.Settlement) {
	if s.Event == sluice.EventDispatch {
		d.log.EmitJob(event.JobDispatched, h.claim, "ref", h.run.Ref)
		return
	}
	d.log.EmitJob(event.Of(s.Event), h.claim, "ref", h.run.Ref, "error", s.Error, "reason", s.Reason, "retry_in", event.Wait(s.Delay))
}

// note records a cycle in the audit. Runs stay dispatched even if this fails.
func (d *Dispatcher) note(work context.Context, l *servedQueue, done Cycle) {
	counts, err := json.Marshal(done)
	if err != nil {
		d.failed(work, "tell the audit of a batch", l.queue, err)
		return
	}
	d.auditCycle(work, l, sluice.AuditEntry{Event: audit.EventBatch, After: counts})
}

// auditCycle records an event of a queue in the audit.
func (d *Dispatcher) auditCycle(work context.Context, l *servedQueue, entry sluice.AuditEntry) {
	entry.Object, entry.Name, entry.Actor = audit.ObjectQueue, l.queue, d.holder.ID
	if err := d.store.AppendAudit(work, []sluice.AuditEntry{entry}); err != nil {
		d.log.Emit(event.NotNoted, l.queue, "event", entry.Event, "error", err)
	}
}

// addSince adds the time since an instant to a sum.
func addSince(sum *time.Duration, began time.Time) { *sum += time.Since(began) }

func (c *Cycle) count(event sluice.Event) {
	switch event {
	case sluice.EventDispatch:
		c.Dispatched++
	case sluice.EventBury:
		c.Buried++
	case sluice.EventRelease:
		c.Released++
	}
}
