package upkeep

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/internal/safe"
	"github.com/sluice-queue/sluice/internal/scrubbed"
)

// notifyInterval is how often this process delivers outstanding notifications to its receivers, unless it
// evaluates alerts more often.
const notifyInterval = 5 * time.Second

// alerting evaluates alerts and notifies receivers outside the rounds. A slow store or an unreachable receiver
// then delays no other work.
type alerting struct {
	watcher *alert.Watcher
	looks   beside
	tells   beside
	all     sync.WaitGroup
}

// beside is work that goes on outside the rounds, once at a time.
type beside struct {
	at      time.Time // when to begin the next run
	running bool
	ended   chan bool // receives whether notifications are due at once
}

func newAlerting(watcher *alert.Watcher) alerting {
	return alerting{watcher: watcher, looks: newBeside(), tells: newBeside()}
}

func newBeside() beside { return beside{ended: make(chan bool, 1)} }

// due reports whether a run is to begin now, and sets the time of the next.
func (b *beside) due(interval time.Duration) bool {
	if b.running || time.Now().Before(b.at) {
		return false
	}
	b.running, b.at = true, time.Now().Add(interval)
	return true
}

// over takes in a run that has ended. tell is true if notifications are due at once.
func (b *beside) over() (tell bool) {
	select {
	case tell = <-b.ended:
		b.running = false
	default:
	}
	return tell
}

// alertBeside evaluates alerts, if it is time and this upkeep leads. This process's receivers are notified even
// if another upkeep leads.
func (u *Upkeep) alertBeside(ctx context.Context, leads bool) {
	a := &u.alerts
	if a.looks.over() {
		a.tells.at = time.Time{}
	}
	a.tells.over()
	if leads && u.options.AlertInterval > 0 && a.looks.due(u.options.AlertInterval) {
		a.all.Go(func() {
			changes, err := a.watcher.Evaluate(ctx)
			if err != nil {
				u.failed(ctx, "alerts", err)
			}
			a.looks.ended <- changes > 0
		})
	}
	if len(u.options.Receivers) > 0 && a.tells.due(u.notifyInterval()) {
		a.all.Go(func() {
			if _, err := a.watcher.Notify(ctx); err != nil {
				u.failed(ctx, "tell receivers", err)
			}
			a.tells.ended <- false
		})
	}
}

func (u *Upkeep) notifyInterval() time.Duration {
	if u.options.AlertInterval > 0 {
		return min(notifyInterval, u.options.AlertInterval)
	}
	return notifyInterval
}

// alertIf evaluates alerts and notifies receivers if all work is to be done.
func (u *Upkeep) alertIf(ctx context.Context, all bool, done *Done) (err error) {
	if !all || u.options.AlertInterval < 0 {
		return nil
	}
	if done.Alerts, err = u.alerts.watcher.Evaluate(ctx); err != nil {
		return err
	}
	_, err = u.alerts.watcher.Notify(ctx)
	return err
}

// listening is a receiver whose errors are scrubbed before the audit stores them cut short. No rule would
// recognise half a secret.
type listening struct {
	alert.Receiver
	clean func(string) string
}

// Notify notifies the receiver and scrubs its error, or what it says when it panics.
func (l *listening) Notify(ctx context.Context, message alert.Message) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = scrubbed.Error(safe.Panicked("the receiver", panicked), l.clean)
		}
	}()
	return scrubbed.Error(l.Receiver.Notify(ctx, message), l.clean)
}

// listeningAll wraps receivers so that their errors are scrubbed. A nil receiver stays nil; notifying it fails
// later.
func listeningAll(receivers []alert.Receiver, clean func(string) string) []alert.Receiver {
	out := make([]alert.Receiver, len(receivers))
	for i, r := range receivers {
		out[i] = r
		if sluice.CheckGiven("receiver", r) == nil {
			out[i] = &listening{r, scrubbed.Text(clean)}
		}
	}
	return out
}
