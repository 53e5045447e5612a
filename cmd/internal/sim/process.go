package sim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
)

// The same values as in package worker, which explains them.
const (
	smallClaimWait = 3 * time.Millisecond
	minWait        = 5 * time.Millisecond
	maxClaim       = 1000
	settleBatch    = 500
	settleWait     = 2 * time.Millisecond
)

// process is a worker process. A process fetches jobs like package worker, but claims only for its
// free slots, and its calls of the store take no time.
type process struct {
	*simulation
	Workers
	holder  string
	queues  []*served
	running int

	planned   bool // it will look at its queues at wakeAt
	wakeAt    time.Duration
	lastClaim time.Duration

	settlements []sluice.Settlement
	outcomes    []outcome // of the settlements
}

// served is a queue as a process sees it.
type served struct {
	*queue
	hungry    bool // it may have jobs to claim
	full      bool // its concurrency limit is reached
	lookAt    time.Duration
	heldUntil time.Duration
}

// outcome is a job that a process runs, and its result.
type outcome struct {
	claim      *sluice.Claim
	queue      *served
	tenant     *tenant
	settlement sluice.Settlement
}

// hire starts the processes.
func (s *simulation) hire() {
	for _, w := range s.scenario.Workers {
		for range w.Processes {
			p := &process{simulation: s, Workers: w, holder: fmt.Sprintf("sim:%d:0", len(s.processes)+1), lastClaim: -smallClaimWait}
			for _, name := range w.Queues {
				p.queues = append(p.queues, &served{queue: s.queues[name], hungry: true})
				s.queues[name].slots += w.Slots
			}
			s.processes = append(s.processes, p)
			p.wake(0)
		}
	}
}

// heed passes a signal of the store to the processes.
func (s *simulation) heed(signal sluice.Signal) {
	for _, p := range s.processes {
		for _, l := range p.queues {
			if signal.Queue == "" || signal.Queue == l.name {
				l.hungry = true
				p.wake(0)
			}
		}
	}
}

// wake schedules the next look, unless an earlier one is scheduled.
func (p *process) wake(in time.Duration) {
	at := p.now + in
	if p.planned && p.wakeAt <= at {
		return
	}
	p.planned, p.wakeAt = true, at
	p.events.add(at, false, func() {
		if p.planned && p.wakeAt == at {
			p.planned = false
			p.fetch()
		}
	})
}

// fetch claims once from each hungry queue, unless more slots will soon be free.
func (p *process) fetch() {
	if 4*(p.Slots-p.running) < p.Slots {
		if wait := p.lastClaim + smallClaimWait - p.now; wait > 0 {
			p.wake(wait)
			return
		}
	}
	next := p.Poll
	for _, l := range p.queues {
		if p.now < l.heldUntil || !l.hungry && p.now < l.lookAt {
			next = min(next, l.lookAt-p.now)
			continue
		}
		room := min(p.Slots-p.running, maxClaim)
		if room == 0 {
			continue // the end of a job wakes the process
		}
		l.hungry = false
		if wait := p.claim(l, room); wait > 0 {
			l.lookAt = p.now + wait
			next = min(next, wait)
			continue
		}
		l.hungry = true
		next = 0
	}
	p.lastClaim = p.now
	if p.idle() {
		return // a signal wakes the process; looks in vain would only cost time
	}
	p.wake(max(next, 0))
}

// idle reports whether there are no jobs to look for.
func (p *process) idle() bool {
	return !slices.ContainsFunc(p.queues, func(l *served) bool { return l.unfinished > 0 })
}

// claim claims jobs of a queue and runs them, and returns how long to wait until the next look at
// the queue. 0: more jobs may be there at once.
func (p *process) claim(l *served, room int) time.Duration {
	if batch := l.settings.Batch; batch > 0 {
		room = min(room, batch)
	}
	wait := p.claimOnce(l, room)
	if rest := l.settings.Interval; rest > 0 {
		l.heldUntil = max(l.heldUntil, p.now+rest)
		wait = max(wait, rest)
	}
	return wait
}

// claimOnce is claim without regard to batch and interval.
func (p *process) claimOnce(l *served, room int) time.Duration {
	claimed, err := p.store.Claim(p.ctx, sluice.ClaimRequest{
		Queue: l.name, Limit: room, Holder: p.holder, Lease: 2 * maxSpan, Token: p.draws.token(), Ageing: l.settings.Ageing,
	})
	if err != nil {
		p.fail(err)
		return p.Poll
	}
	if len(claimed.Jobs) > 0 {
		p.start(l, claimed.Jobs)
	}
	switch {
	case len(claimed.Jobs) == room:
		return 0
	case claimed.Full:
		return p.waitForEnd(l, claimed.NextDue)
	case claimed.Limited:
		wait := min(max(claimed.NextDue, minWait), p.Poll)
		l.heldUntil = p.now + wait
		return wait
	case len(claimed.Jobs) > 0:
		return minWait
	case claimed.NextDue < 0:
		return p.Poll
	}
	return max(claimed.NextDue, minWait)
}

// waitForEnd handles a queue at its concurrency limit: the next of its jobs that ends makes it
// hungry again.
func (p *process) waitForEnd(l *served, nextDue time.Duration) time.Duration {
	l.full = true
	if nextDue < 0 {
		return p.Poll
	}
	return min(max(nextDue, minWait), p.Poll)
}

// start runs claimed jobs. Their durations and outcomes are drawn now.
func (p *process) start(l *served, claims []*sluice.Claim) {
	late := p.draws.jitters(claims, l.settings.Jitter)
	tenants := l.started(claims, late, p.now, p.scenario.Start)
	p.running += len(claims)
	for i, c := range claims {
		o := outcome{claim: c, queue: l, tenant: tenants[i]}
		takes := late[i] + p.attempt(&o)
		p.moved(p.now + takes)
		p.after(takes, func() { p.end(o) })
	}
}

// attempt draws the duration of an attempt, and decides the outcome of the job.
func (p *process) attempt(o *outcome) time.Duration {
	work := p.Work
	if number, err := strconv.Atoi(string(o.claim.Payload)); err != nil {
		p.fail(fmt.Errorf("the payload of job %s is not what was enqueued: %w", o.claim.ID, err))
	} else if own := p.scenario.Arrivals[number].Work; own != nil {
		work = *own
	}
	settings := o.queue.settings
	chance := p.draws.of(o.claim.ID, o.claim.Attempts)
	takes := work.takes(chance)
	failed := chance.Float64() < work.Failures
	if settings.Timeout > 0 && takes > settings.Timeout {
		takes, failed = settings.Timeout, true
	}
	o.settlement = sluice.Settlement{ID: o.claim.ID, Token: o.claim.Token, Holder: p.holder, Event: sluice.EventComplete}
	if failed {
		certain := settings
		certain.Backoff.Jitter, certain.Backoff.FullJitter = 0, false
		o.settlement = sluice.FailureOf(o.claim, certain, "simulated failure")
		o.settlement.Delay = backoff(settings.Backoff, o.settlement.Delay, chance)
	}
	o.claim = nil // no longer needed, and large
	return takes
}

// end frees the slot of a job, which is settled with others a moment later.
func (p *process) end(o outcome) {
	p.running--
	o.queue.stopped(p.now)
	p.settlements, p.outcomes = append(p.settlements, o.settlement), append(p.outcomes, o)
	switch len(p.settlements) {
	case 1:
		p.after(settleWait, p.settle)
	case settleBatch:
		p.settle()
	}
	p.wake(0)
}

// settle stores outcomes of jobs, and looks again at queues that were at their concurrency limit.
func (p *process) settle() {
	errs, err := p.store.Settle(p.ctx, p.settlements)
	if p.fail(errors.Join(append(errs, err)...)); p.err != nil {
		return
	}
	for _, o := range p.outcomes {
		p.settled(o)
		if o.queue.full {
			o.queue.full, o.queue.hungry = false, true
			p.wake(0)
		}
	}
	p.settlements, p.outcomes = p.settlements[:0], p.outcomes[:0]
}

// settled records the outcome of a job.
func (s *simulation) settled(o outcome) {
	delay := o.settlement.Delay
	o.queue.settled(o.tenant, o.settlement.Event, s.now)
	if o.settlement.Event != sluice.EventRetry {
		s.finished++
		s.ended++
		s.moved(s.now)
		return
	}
	due := s.now + delay
	s.moved(due)
	s.events.add(due, true, func() { o.queue.due(o.tenant, 1, due, s.now) })
}
