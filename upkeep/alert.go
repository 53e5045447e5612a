package upkeep

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/internal/scrubbed"
)

// tellInterval is how often the receivers of this process are told what they were not told yet, if alerts are not looked at
// more often than that.
const tellInterval = 5 * time.Second

// alerting looks at alerts and tells receivers beside the rounds: nothing waits for a store that is slow to say how it is,
// or for a receiver that is down.
type alerting struct {
	watcher *alert.Watcher
	looks   beside
	tells   beside
	all     sync.WaitGroup
}

// beside is work that goes on beside the rounds, once at a time.
type beside struct {
	at      time.Time // when it is done again
	running bool
	ended   chan bool // gets whether something is to be told at once
}

func newAlerting(watcher *alert.Watcher) alerting {
	return alerting{watcher: watcher, looks: newBeside(), tells: newBeside()}
}

func newBeside() beside { return beside{ended: make(chan bool, 1)} }

// due reports whether the work is to be begun now, and says when it is to be begun next.
func (b *beside) due(interval time.Duration) bool {
	if b.running || time.Now().Before(b.at) {
		return false
	}
	b.running, b.at = true, time.Now().Add(interval)
	return true
}

// over reports whether the work has ended, and whether something is to be told at once.
func (b *beside) over() (tell bool) {
	select {
	case tell = <-b.ended:
		b.running = false
	default:
	}
	return tell
}

// alertBeside looks at alerts, if it is time and this upkeep leads, and tells receivers, whoever leads.
func (u *Upkeep) alertBeside(ctx context.Context, leads bool) {
	a := &u.alerts
	if a.looks.over() {
		a.tells.at = time.Time{}
	}
	a.tells.over()
	if leads && u.options.AlertInterval > 0 && a.looks.due(u.options.AlertInterval) {
		a.all.Go(func() {
			changes, err := a.watcher.Look(ctx)
			if err != nil {
				u.failed(ctx, "alerts", err)
			}
			a.looks.ended <- changes > 0
		})
	}
	if len(u.options.Receivers) > 0 && a.tells.due(u.tellInterval()) {
		a.all.Go(func() {
			if _, err := a.watcher.Tell(ctx); err != nil {
				u.failed(ctx, "tell receivers", err)
			}
			a.tells.ended <- false
		})
	}
}

func (u *Upkeep) tellInterval() time.Duration {
	if u.options.AlertInterval > 0 {
		return min(tellInterval, u.options.AlertInterval)
	}
	return tellInterval
}

// alertIf looks and tells where everything is to be done.
func (u *Upkeep) alertIf(ctx context.Context, all bool, done *Done) (err error) {
	if !all || u.options.AlertInterval < 0 {
		return nil
	}
	if done.Alerts, err = u.alerts.watcher.Look(ctx); err != nil {
		return err
	}
	_, err = u.alerts.watcher.Tell(ctx)
	return err
}

// listening is a receiver whose errors are scrubbed before the audit gets a cut one: of half a secret no rule knows that it is
// one.
type listening struct {
	alert.Receiver
	clean func(string) string
}

// Tell scrubs the answer.
func (l *listening) Tell(ctx context.Context, message alert.Message) error {
	return scrubbed.Error(l.Receiver.Tell(ctx, message), l.clean)
}

// listeningAll gives receivers whose errors are scrubbed. One that is nil stays so, and is refused when it is told.
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
