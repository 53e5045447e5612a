package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/pause"
	"github.com/sluice-queue/sluice/presence"
)

const (
	// guardInterval is how long an engine's retention is cached. guardAgain is the time until the next request
	// after an answer without a retention.
	guardInterval = 10 * time.Minute
	guardAgain    = 30 * time.Second
)

// guarded is the retention that an engine reported for ended runs.
type guarded struct {
	report     engine.Report
	known      bool      // the engine reported a retention once
	reportedAt time.Time // when the engine last reported it
	until      time.Time // when to ask again
}

// guard returns an error if upkeep could not follow the runs of a queue safely, by the retention of its engine. The
// dispatcher then starts none. If an engine does not report its retention, starts go on and the dispatcher soon asks
// again.
func (d *Dispatcher) guard(work context.Context, l *servedQueue, q sluice.Queue) error {
	where := engine.Location(q.Settings)
	known := l.guarded(where)
	if !time.Now().Before(known.until) {
		known, _ = d.look(work, l, q, where)
	}
	unsafe := engine.CheckFollowing(q.Settings, known.report)
	if l.refuse(unsafe) && unsafe != nil {
		d.log.Emit(event.DispatchRefused, l.queue, "error", unsafe)
	}
	return unsafe
}

// look asks an engine for its retention of ended runs.
func (d *Dispatcher) look(work context.Context, l *servedQueue, q sluice.Queue, where string) (guarded, error) {
	name, target := engine.TargetAt(l.queue, q.Settings, where)
	asked := time.Now()
	report, err := d.options.Engines[name].Check(work, target)
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.guards[where]
	if g == nil {
		g = &guarded{}
		l.guards[where] = g
	}
	g.until = asked.Add(guardAgain)
	if err == nil || report.Retention > 0 { // an error besides a known retention does not matter here
		err = nil
		*g = guarded{report: report, known: true, reportedAt: asked, until: asked.Add(guardInterval)}
	}
	return *g, err
}

// guarded returns the cached retention of an engine.
func (l *servedQueue) guarded(where string) guarded {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.guards[where]; g != nil {
		return *g
	}
	return guarded{}
}

// again leaves out jobs that the engine must not be asked for again. Their runs may have ended and be
// forgotten, so a new request would run them twice. Upkeep decides about them by asking for the run's outcome.
// If an engine does not report its retention now, again asks only for runs that any engine still remembers.
func (d *Dispatcher) again(work context.Context, l *servedQueue, q sluice.Queue, holds []*hold) (ask []*hold, err error) {
	for _, h := range holds {
		age, known, failed := d.age(h), l.guarded(h.claim.Engine), error(nil)
		if !h.fresh && known.least().Forgets(age) && (!known.known || pause.Since(known.reportedAt) > guardAgain) {
			if known, failed = d.look(work, l, q, h.claim.Engine); failed != nil {
				err = failed
			}
		}
		switch {
		case h.fresh || !known.least().Forgets(age):
			ask = append(ask, h)
		case known.report.Forgets(age):
			l.letGo("asked for so long ago that the engine may have forgotten its run; upkeep decides", h)
		case failed == nil:
			ask = append(ask, h)
		}
	}
	return ask, err
}

// least returns the retention that every engine has for certain, or this engine's if it is shorter.
func (g guarded) least() engine.Report {
	if g.known && g.report.Retention > 0 {
		return engine.Report{Retention: min(g.report.Retention, engine.LeastRetention)}
	}
	return engine.Report{Retention: engine.LeastRetention}
}

// refuse records why nothing is dispatched. news is true if the reason has changed.
func (l *servedQueue) refuse(why error) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	news = fmt.Sprint(why) != fmt.Sprint(l.refused)
	if news {
		l.refused, l.refusedAt = why, time.Now()
	}
	return news
}

// refusal returns why nothing is dispatched; nil: jobs may be dispatched.
func (l *servedQueue) refusal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// logBreaker records in the log, the audit and the holder's conditions that the breaker opened or closed. The
// record names the engine, because only one of several may be unusable.
func (d *Dispatcher) logBreaker(work context.Context, l *servedQueue, engine string, cause error) {
	if l.breaker.open() {
		l.suffer(engine, cause)
		cause = fmt.Errorf("engine %s: %w", engine, cause)
		d.log.Emit(event.BreakerOpened, l.queue, "error", cause)
		d.auditCycle(work, l, sluice.AuditEntry{Event: audit.EventBreaker, Reason: "opened: " + sluice.Brief(cause.Error())})
		return
	}
	d.log.Emit(event.BreakerClosed, l.queue)
	l.heal()
	d.auditCycle(work, l, sluice.AuditEntry{Event: audit.EventBreaker, Reason: "closed"})
}

// suffer records why the engine is unusable. The cause may change while the breaker stays open.
func (l *servedQueue) suffer(engine string, cause error) {
	broken := presence.EngineCondition(l.queue, engine, l.breaker.openSince, "the breaker is open", cause)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = &broken
}

// heal records that the engine is usable.
func (l *servedQueue) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = nil
}

// conditions lists the problems that keep queues from being dispatched.
func (d *Dispatcher) conditions() []presence.Condition {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []presence.Condition
	for _, l := range d.serving {
		l.mu.Lock()
		if l.refused != nil {
			all = append(all, l.refusedCondition())
		}
		if l.broken != nil {
			all = append(all, *l.broken)
		}
		l.mu.Unlock()
	}
	presence.SortConditions(all)
	return all
}

// refusedCondition describes why nothing is dispatched although the engine is usable. The caller holds l.mu.
func (l *servedQueue) refusedCondition() presence.Condition {
	if unknown, is := errors.AsType[*engine.UnknownError](l.refused); is {
		return presence.NewCondition(presence.ConditionUnknownEngine, l.queue, unknown.Engine, l.refusedAt, unknown.Error())
	}
	return presence.NewCondition(presence.ConditionUnsafe, l.queue, "", l.refusedAt, l.refused.Error())
}
