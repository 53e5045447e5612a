package payment_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/payments/payment"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/local"
	"github.com/sluice-queue/sluice/worker"
)

// When the service begins, the queue has the settings that the source asks for.
func TestThePresetIsThatOfTheSource(t *testing.T) {
	onBoth(t, func(d *desk) {
		q, err := d.books.Client.Queue(d.Context(), payment.Queue)
		if err != nil {
			d.Fatal(err)
		}
		want := sluice.DefaultSettings()
		want.Batch, want.Interval, want.Jitter, want.ClaimAhead = 500, 5*time.Second, 4*time.Second, 5*time.Second
		want.Rate, want.Burst, want.Concurrency = sluice.Rate{Jobs: 500, Per: 5 * time.Second}, 500, 5000
		want.MaxAttempts, want.RetryRuns, want.Lease, want.Audit = 5, true, 2*time.Minute, sluice.AuditFull
		want.Engine, want.RunType, want.RunTaskQueue = "temporal", "PaymentExecWorkflow", "payment-exec-task-queue"
		want.RunRef, want.RunTimeout = "exec-{queue}-{key}", time.Hour
		if q.Settings != want {
			d.Errorf("the settings are\n%+v, want\n%+v", q.Settings, want)
		}
	})
}

// started is an engine that notes the delay of each run.
type started struct {
	*local.Engine
	mu     sync.Mutex
	delays []time.Duration
}

func (s *started) Start(ctx context.Context, target engine.Target, runs []engine.Run) []error {
	s.mu.Lock()
	for _, run := range runs {
		s.delays = append(s.delays, run.Delay)
	}
	s.mu.Unlock()
	return s.Engine.Start(ctx, target, runs)
}

// The runs of a wave begin at random times within the jitter.
func TestRunsOfAWaveAreSpreadOverTheJitter(t *testing.T) {
	onBoth(t, func(d *desk) {
		const payments = 100
		var wave []any
		for i := range payments {
			r := request(fmt.Sprintf("p%d", i))
			r.DueAt = time.Now().Add(-time.Minute)
			wave = append(wave, r)
		}
		d.init(wave...)
		quiet := slog.New(slog.DiscardHandler)
		runner := &started{Engine: local.New(d.books.Store, local.Options{Worker: worker.Options{Logger: quiet}})}
		options := dispatcher.Options{Engines: map[string]engine.Engine{"temporal": runner}, Logger: quiet}
		if _, err := dispatcher.New(d.books.Store, options).Once(d.Context(), payment.Queue); err != nil {
			d.Fatal(err)
		}
		if len(runner.delays) != payments {
			d.Fatalf("%d runs were started", len(runner.delays))
		}
		first, last := slices.Min(runner.delays), slices.Max(runner.delays)
		if first < 0 || last > d.domain.Preset.Jitter || last-first < d.domain.Preset.Jitter/4 {
			d.Errorf("the runs wait from %s to %s; the jitter is %s", first, last, d.domain.Preset.Jitter)
		}
	})
}
