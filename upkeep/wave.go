package upkeep

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-queue/sluice/forecast"
)

// counting counts forecasts outside the rounds, so that recovery does not wait for it.
type counting struct {
	at      time.Time // when to look again
	running bool
	ended   chan time.Time // receives when to look again
	all     sync.WaitGroup
}

func (c *counting) wait() { c.all.Wait() }

// countBeside counts the jobs that fall due outside the rounds, if it is time.
func (u *Upkeep) countBeside(ctx context.Context) {
	select {
	case u.waves.at = <-u.waves.ended:
		u.waves.running = false
	default:
	}
	if u.waves.running || time.Now().Before(u.waves.at) {
		return
	}
	u.waves.running = true
	u.waves.all.Go(func() {
		wait, err := u.countIfOld(ctx)
		if err != nil {
			u.failed(ctx, "count waves", err)
		}
		u.waves.ended <- time.Now().Add(wait)
	})
}

// countIfOld counts unless another process has done so lately, and returns the time until the next look.
func (u *Upkeep) countIfOld(ctx context.Context) (wait time.Duration, err error) {
	interval := u.options.WavesInterval
	last, err := forecast.Given(u.store).Waves(ctx, forecast.Filter{Ahead: time.Microsecond})
	if err != nil {
		return interval, err
	}
	var took time.Duration
	for _, q := range last.Queues {
		if q.CountedAt.After(last.Now) { // somebody has set the clock back since
			continue
		}
		wait = max(wait, max(interval, forecast.Rest(q.Took))-last.Now.Sub(q.CountedAt))
		took = max(took, q.Took)
	}
	if wait > 0 { // another process counts: leave it time for its next count
		return wait + took + interval/2, nil
	}
	count, err := forecast.Given(u.store).CountWaves(ctx)
	return max(interval, forecast.Rest(count.Took)), err
}

// countIf counts if all work is to be done.
func (u *Upkeep) countIf(ctx context.Context, all bool) error {
	if !all {
		return nil
	}
	if _, err := forecast.Given(u.store).CountWaves(ctx); err != nil {
		return fmt.Errorf("count waves: %w", err)
	}
	return nil
}
