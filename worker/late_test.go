package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/tenancy"
	"github.com/sluice-queue/sluice/worker"
)

func TestIdleWorkerStartsJobsThatOthersMakeDue(t *testing.T) {
	act := sluice.Act{By: "ada", Reason: "test"}
	for name, c := range map[string]struct {
		before sluice.EnqueueOptions
		make   func(s *shop, id sluice.ID) error
		within time.Duration
	}{
		"rescheduled to now": {sluice.EnqueueOptions{Delay: time.Hour}, func(s *shop, id sluice.ID) error {
			return s.client.RunNow(s.Context(), []sluice.ID{id}, act)
		}, 50 * time.Millisecond},
		"rescheduled to soon": {sluice.EnqueueOptions{Delay: time.Hour}, func(s *shop, id sluice.ID) error {
			return s.client.Reschedule(s.Context(), []sluice.ID{id}, time.Now().Add(time.Second), act)
		}, 1100 * time.Millisecond},
		"paused for a while": {sluice.EnqueueOptions{Delay: 10 * time.Second}, func(s *shop, _ sluice.ID) error {
			_, err := s.client.PauseFor(s.Context(), "payments", 15*time.Second, act)
			return err
		}, 15100 * time.Millisecond},
		"resumed": {sluice.EnqueueOptions{Delay: 5 * time.Second}, func(s *shop, _ sluice.ID) error {
			if err := s.client.Pause(s.Context(), "payments", act); err != nil {
				return err
			}
			time.Sleep(20 * time.Second)
			return s.client.Resume(s.Context(), "payments", act)
		}, 20100 * time.Millisecond},
		"tenant resumed": {sluice.EnqueueOptions{Delay: 5 * time.Second, Tenant: "acme"}, func(s *shop, _ sluice.ID) error {
			_, err := tenancy.Pause(s.Context(), s.store, "payments", "acme", 20*time.Second, act)
			return err
		}, 20100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				s.settings(func(*sluice.Settings) {})
				var ran time.Time
				s.run(worker.Options{}, func(context.Context, *worker.Job[payment]) error { ran = time.Now(); return nil })
				time.Sleep(time.Minute)
				id := s.add(c.before)
				time.Sleep(time.Second)
				begun := time.Now()
				if err := c.make(s, id); err != nil {
					t.Fatal(err)
				}
				s.becomes(id, sluice.StateCompleted)
				if err := s.end(); err != nil {
					t.Error(err)
				}
				if took := ran.Sub(begun); took > c.within {
					t.Errorf("it began after %s, want at most %s", took, c.within)
				}
			})
		})
	}
}
