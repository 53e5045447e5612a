package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/pause"
)

const (
	// guardInterval is how long an engine's retention is remembered, and guardAgain when it is asked for again that did
	// not say.
	guardInterval = 10 * time.Minute
	guardAgain    = 30 * time.Second
)

// guarded is what an engine said of how long it keeps runs that ended.
type guarded struct {
	report sluice.EngineReport
	known  bool      // it said so once
	toldAt time.Time // when it was last asked and said so
	until  time.Time // when to ask again
}

// guard says why no runs of a queue may be started, although its engine would: none of them could be followed safely. An
// engine that does not say how long it keeps runs is asked again soon, and keeps nobody from starting some.
func (d *Dispatcher) guard(work context.Context, l *lane, q sluice.Queue) error {
	where := sluice.EngineOf(q.Settings)
	known := l.guarded(where)
	if !time.Now().Before(known.until) {
		known, _ = d.look(work, l, q, where)
	}
	unsafe := sluice.CheckFollowing(q.Settings, known.report)
	if l.refuse(unsafe) && unsafe != nil {
		d.log.Tell(event.DispatchRefused, l.queue, "error", unsafe)
	}
	return unsafe
}

// look asks an engine how long it keeps runs that ended.
func (d *Dispatcher) look(work context.Context, l *lane, q sluice.Queue, where string) (guarded, error) {
	name, target := sluice.TargetAt(l.queue, q.Settings, where)
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
	if err == nil || report.Retention > 0 { // what failed then is of no matter here
		err = nil
		*g = guarded{report: report, known: true, toldAt: asked, until: asked.Add(guardInterval)}
	}
	return *g, err
}

// guarded is what is known of an engine.
func (l *lane) guarded(where string) guarded {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.guards[where]; g != nil {
		return *g
	}
	return guarded{}
}

// again leaves out what the engine must not be asked for again: it may have run and be forgotten, so that asking for it
// would run it twice. That is left to upkeep, which asks how the run is, and knows what no answer means. An engine that
// does not say now how long it keeps runs is only asked for what any engine still knows.
func (d *Dispatcher) again(work context.Context, l *lane, q sluice.Queue, holds []*hold) (ask []*hold, err error) {
	for _, h := range holds {
		age, known, failed := d.age(h), l.guarded(h.claim.Engine), error(nil)
		if !h.fresh && known.least().Forgets(age) && (!known.known || pause.Since(known.toldAt) > guardAgain) {
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

// least is what any engine remembers for certain, and this one too.
func (g guarded) least() sluice.EngineReport {
	if g.known && g.report.Retention > 0 {
		return sluice.EngineReport{Retention: min(g.report.Retention, sluice.LeastRetention)}
	}
	return sluice.EngineReport{Retention: sluice.LeastRetention}
}

// refuse notes why nothing is dispatched, and reports whether that is news.
func (l *lane) refuse(why error) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	news = fmt.Sprint(why) != fmt.Sprint(l.refused)
	if news {
		l.refused, l.refusedAt = why, time.Now()
	}
	return news
}

// refusal is why nothing is dispatched; nil: something may be.
func (l *lane) refusal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// tellBreaker tells that the breaker has opened or closed: the log, the audit, and whoever looks at the holders. They are
// told which engine it is: of several, one may be away.
func (d *Dispatcher) tellBreaker(work context.Context, l *lane, engine string, cause error) {
	if l.breaker.open() {
		l.suffer(engine, cause)
		cause = fmt.Errorf("engine %s: %w", engine, cause)
		d.log.Tell(event.BreakerOpened, l.queue, "error", cause)
		d.tellAudit(work, l, sluice.AuditEntry{Event: sluice.EventBreaker, Reason: "opened: " + sluice.Brief(cause.Error())})
		return
	}
	d.log.Tell(event.BreakerClosed, l.queue)
	l.heal()
	d.tellAudit(work, l, sluice.AuditEntry{Event: sluice.EventBreaker, Reason: "closed"})
}

// suffer notes why the engine cannot be used. While the breaker stays open the cause may change.
func (l *lane) suffer(engine string, cause error) {
	broken := sluice.EngineCondition(l.queue, engine, l.breaker.openSince, "the breaker is open", cause)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = &broken
}

// heal notes that the engine can be used.
func (l *lane) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = nil
}

// conditions are what keeps queues from being dispatched.
func (d *Dispatcher) conditions() []sluice.Condition {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []sluice.Condition
	for _, l := range d.lanes {
		l.mu.Lock()
		if l.refused != nil {
			all = append(all, l.refusedCondition())
		}
		if l.broken != nil {
			all = append(all, *l.broken)
		}
		l.mu.Unlock()
	}
	sluice.SortConditions(all)
	return all
}

// refusedCondition says why nothing is dispatched although the engine can be used. The caller holds l.mu.
func (l *lane) refusedCondition() sluice.Condition {
	if unknown, is := errors.AsType[*sluice.UnknownEngineError](l.refused); is {
		return sluice.NewCondition(sluice.ConditionUnknownEngine, l.queue, unknown.Engine, l.refusedAt, unknown.Error())
	}
	return sluice.NewCondition(sluice.ConditionUnsafe, l.queue, "", l.refusedAt, l.refused.Error())
}
