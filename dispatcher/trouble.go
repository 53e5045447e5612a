package dispatcher

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
)

const (
	// guardInterval is how long an engine's retention is remembered, and guardAgain when it is asked for again that did
	// not say.
	guardInterval = 10 * time.Minute
	guardAgain    = 30 * time.Second
)

// guarded is what an engine said of how long it keeps runs that ended.
type guarded struct {
	where  string
	report sluice.EngineReport
	until  time.Time
}

// guard says why no runs of a queue may be started, although its engine would: none of them could be followed safely. An
// engine that does not say how long it keeps runs is asked again soon, and keeps nobody from starting some.
func (d *Dispatcher) guard(work context.Context, l *lane, q sluice.Queue) error {
	where := sluice.EngineOf(q.Settings)
	if l.guarded.where != where {
		l.guarded = guarded{where: where}
	}
	if !time.Now().Before(l.guarded.until) {
		name, target := sluice.TargetAt(l.queue, q.Settings, where)
		report, err := d.options.Engines[name].Check(work, target)
		l.guarded.until = time.Now().Add(guardAgain)
		if err == nil {
			l.guarded.report, l.guarded.until = report, time.Now().Add(guardInterval)
		}
	}
	unsafe := sluice.CheckFollowing(q.Settings, l.guarded.report)
	if l.refuse(unsafe) && unsafe != nil {
		d.log.Tell(event.DispatchRefused, l.queue, "error", unsafe)
	}
	return unsafe
}

// refuse notes why nothing is dispatched, and reports whether that is news.
func (l *lane) refuse(why error) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	news = fmt.Sprint(why) != fmt.Sprint(l.refused)
	l.refused = why
	return news
}

// refusal is why nothing is dispatched; nil: something may be.
func (l *lane) refusal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// tellBreaker tells that the breaker has opened or closed: the log, the audit, and whoever looks at the holders.
func (d *Dispatcher) tellBreaker(work context.Context, l *lane, cause error) {
	if l.breaker.open() {
		d.log.Tell(event.BreakerOpened, l.queue, "error", cause)
		l.suffer(sluice.BreakerIsOpen + " since " + l.breaker.openSince.UTC().Format(time.RFC3339) + ": " + sluice.Brief(cause.Error()))
		d.tellAudit(work, l, sluice.AuditEntry{Event: sluice.EventBreaker, Reason: "opened: " + sluice.Brief(cause.Error())})
		return
	}
	d.log.Tell(event.BreakerClosed, l.queue)
	l.suffer("")
	d.tellAudit(work, l, sluice.AuditEntry{Event: sluice.EventBreaker, Reason: "closed"})
}

func (l *lane) suffer(trouble string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = trouble
}

// trouble is what keeps queues from being dispatched, for people; empty: nothing does.
func (d *Dispatcher) trouble() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for _, l := range d.lanes {
		l.mu.Lock()
		if l.refused != nil {
			all = append(all, sluice.TroubleOf(l.queue, l.refused.Error()))
		}
		if l.broken != "" {
			all = append(all, sluice.TroubleOf(l.queue, l.broken))
		}
		l.mu.Unlock()
	}
	slices.Sort(all)
	return sluice.JoinTroubles(all)
}
