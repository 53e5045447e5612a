package dispatcher

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/stat"
)

// start asks engines to start runs and updates the breaker by their answers. The result is how many jobs were
// asked for the first time.
func (d *Dispatcher) start(work context.Context, l *servedQueue, q sluice.Queue, holds []*hold) (first int) {
	for _, h := range holds {
		if h.fresh {
			first++
		}
	}
	began := time.Now()
	worked, failed := d.ask(work, l, q, holds)
	addSince(&l.starting, began)
	switch {
	case !worked && failed == nil:
	case l.breaker.learn(worked, failed != nil, time.Now(), d.options.Probe):
		d.logBreaker(work, l, q.Settings.Engine, failed)
	case l.breaker.open():
		l.suffer(q.Settings.Engine, failed)
	}
	return first
}

// askBeside asks the engine again, while cycles go on, for jobs whose start is in doubt.
func (d *Dispatcher) askBeside(work context.Context, l *servedQueue, q sluice.Queue) {
	holds := l.doubtful(time.Now(), true)
	holds = holds[:min(len(holds), askAgain)]
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(holds) == 0 || l.asking {
		return
	}
	l.asking = true
	for _, h := range holds {
		h.asking = true
	}
	d.all.Go(func() {
		ask, err := d.again(work, l, q, holds)
		if err != nil {
			d.failed(work, "look at the engine", l.queue, err)
		}
		_, _ = d.ask(work, l, q, ask) // the next start updates the breaker
		l.mu.Lock()
		defer l.mu.Unlock()
		l.asking = false
		for _, h := range holds {
			h.asking = false
		}
		l.nudge()
	})
}

// ask has runs started, each at the engine recorded for it even if the settings have changed, and decides about
// their jobs. worked is true if an engine gave a clear answer. failed is an answer that shows an unusable
// engine.
func (d *Dispatcher) ask(work context.Context, l *servedQueue, q sluice.Queue, holds []*hold) (worked bool, failed error) {
	byEngine := make(map[string][]*hold)
	for _, h := range holds {
		byEngine[h.claim.Engine] = append(byEngine[h.claim.Engine], h)
	}
	for where, ofEngine := range byEngine {
		errs := d.askAt(work, l, q, where, ofEngine)
		did, fault := d.learn(l, ofEngine, errs)
		worked = worked || did
		if fault != nil {
			failed = fault
		}
	}
	return worked, failed
}

// askAt has runs started at one engine.
func (d *Dispatcher) askAt(work context.Context, l *servedQueue, q sluice.Queue, where string, holds []*hold) []error {
	name, target := engine.TargetAt(l.queue, q.Settings, where)
	now := d.settings.Now()
	runs := make([]engine.Run, len(holds))
	for i, h := range holds {
		h.run.Delay = delayOf(h.claim, q.Settings, now)
		h.run.Begin = func() error { return d.begin(work, l, h) }
		runs[i], h.begun = h.run, false
		d.log.EmitJob(event.JobDispatching, h.claim, "priority", h.claim.Priority, "ref", h.run.Ref,
			"type", target.Type, "task_queue", target.TaskQueue, "labels", event.Labels(h.claim.Labels))
	}
	errs := d.options.Engines[name].Start(work, target, runs)
	for i, h := range holds {
		if errors.Is(errs[i], engine.ErrRefTaken) && h.run.Work != "" {
			errs[i] = d.adopt(work, q, target, name, h, errs[i])
		}
		if errs[i] != nil {
			stat.CountStartFailed(d.store, l.queue, h.claim.Tenant)
			d.log.EmitJob(event.StartFailed, h.claim, "ref", h.run.Ref, "error", errs[i])
		}
	}
	return errs
}

// learn decides about jobs by an engine's answers, and derives from them whether the engine is usable. Two
// kinds of answers say nothing about the engine: answers for jobs set aside, and runs that this process did not
// ask for.
func (d *Dispatcher) learn(l *servedQueue, holds []*hold, errs []error) (worked bool, failed error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, h := range holds {
		_, ours := errors.AsType[*notBegun](errs[i])
		switch {
		case ours:
		case usable(errs[i]):
			worked = true
		case !h.aside:
			failed = errs[i]
		}
	}
	if worked {
		l.workedAt = time.Now()
	}
	for i, h := range holds {
		d.decide(h, errs[i], worked)
		h.fresh = h.fresh && (h.answer != nil || notAsked(h, errs[i]))
		if h.answer != nil {
			d.countBegun(h)
		}
	}
	return worked, failed
}

// delayOf returns how long the engine must wait before the run of a claimed job begins. The run waits until the
// job is due by the store's clock, which shows at least now, and for its share of the jitter.
func delayOf(c *sluice.Claim, s sluice.Settings, now time.Time) time.Duration {
	delay := max(c.DueAt.Sub(now), 0)
	if s.ClaimAhead == 0 {
		delay = 0 // it was due when it was claimed
	}
	if s.Jitter > 0 {
		delay += rand.N(s.Jitter + 1)
	}
	return delay
}

// usable reports whether an answer shows a usable engine: the engine took the run, refused only this run, or is
// busy.
func usable(answer error) bool {
	return answer == nil || errors.Is(answer, engine.ErrRefused) || errors.Is(answer, engine.ErrRefTaken) || errors.Is(answer, engine.ErrBusy)
}

// notAsked reports whether an answer states that the engine never received the request.
func notAsked(h *hold, answer error) bool { return errors.Is(answer, engine.ErrNotAsked) && !h.begun }

// decide sets the settlement of a job by its engine's answer. Without a settlement, the dispatcher holds the
// job and asks again, because the run may have started. After such a doubt, a later answer that nothing starts
// now does not settle the earlier request. The caller holds l.mu.
func (d *Dispatcher) decide(h *hold, answer error, worked bool) {
	out := &sluice.Settlement{ID: h.claim.ID, Token: h.claim.Token, Holder: d.holder.ID, Claim: h.claim}
	ours, isOurs := errors.AsType[*notBegun](answer)
	busy := errors.Is(answer, engine.ErrBusy) || errors.Is(answer, engine.ErrTarget)
	switch {
	case answer == nil:
		out.Event, out.Reason = sluice.EventDispatch, h.adopted
	case errors.Is(answer, engine.ErrRefTaken), errors.Is(answer, engine.ErrRefused) && !h.doubtful:
		out.Event, out.Error, out.Reason = sluice.EventBury, answer.Error(), "the engine refused the run for good: "+sluice.Brief(answer.Error())
	case errors.Is(answer, engine.ErrRefused):
		h.lost = "refused, after an answer that left open whether its run was started; upkeep decides"
		return
	case h.doubtful && notAsked(h, answer), isOurs && ours.stays:
		h.againAt = time.Now().Add(d.options.Poll)
		return
	case h.doubtful && busy:
		h.askedAt, h.againAt = time.Now(), time.Now().Add(busyDelay)
		return
	case h.doubtful, !busy && !notAsked(h, answer):
		h.doubt(time.Now(), d.options.Poll, d.options.Probe)
		return
	default:
		out.Event, out.Reason = sluice.EventRelease, answer.Error()
		switch {
		case isOurs:
		case busy:
			out.Delay = busyDelay
		case worked: // the engine works for other jobs, so the fault lies with this job
			out.Delay = min(busyDelay<<min(h.claim.Releases, 16), lonelyMax)
		}
	}
	h.answer = out
}

// handBack releases the jobs that no engine was asked for.
func (d *Dispatcher) handBack(l *servedQueue, why string) {
	for _, h := range l.fresh() {
		l.mu.Lock()
		h.answer = &sluice.Settlement{
			ID: h.claim.ID, Token: h.claim.Token, Holder: d.holder.ID, Claim: h.claim, Event: sluice.EventRelease,
			Reason: why,
		}
		d.countBegun(h)
		l.mu.Unlock()
	}
}
