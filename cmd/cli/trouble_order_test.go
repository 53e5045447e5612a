package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/worker"
)

// troublesOfOrder are troubles of jobs that wait for other jobs, for slots, or for limits of their own.
func troublesOfOrder() []trouble {
	return []trouble{
		{
			sees: notStarted, cause: "every slot is taken by a job that does not end", asks: "why", says: `1 worker serves the queue, with 2 of 2 slots busy; one has to become free`, mend: "--slots N",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				id := s.add("mail", 3, sluice.EnqueueOptions{})
				s.work("mail", untilTheEnd)
				s.until("both slots are told to be busy", func() bool {
					return s.told(func(h presence.Holder) bool { return h.Role == presence.RoleWorker && h.Busy == 2 })
				})
				return s.waiting("mail", id)
			},
		},
		{
			sees: fewStart, cause: "a job before it in its order is stuck", asks: "why", says: `it waits for job .*, which is claimed and comes before it with the order key "account 7"`, mend: "sluice why ",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.add("mail", 1, sluice.EnqueueOptions{OrderKey: "account 7"})
				id := s.add("mail", 1, sluice.EnqueueOptions{OrderKey: "account 7"})
				s.work("mail", untilTheEnd)
				s.until("the first runs", func() bool { return s.claimed("mail") == 1 })
				return id
			},
		},
		{
			sees: fewStart, cause: "a job that it runs after is dead", asks: "why", says: `the job that it runs after has not completed; job .* is dead; if one fails, it waits until that was requeued`, mend: "then: sluice requeue ", log: "no route to the bank", besides: "success-rate",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				first := s.add("mail", 1, sluice.EnqueueOptions{MaxAttempts: 1})
				id := s.add("mail", 1, sluice.EnqueueOptions{After: []sluice.ID{first}, AfterFailure: sluice.FailureWaits})
				s.work("mail", func(context.Context, *worker.Job[json.RawMessage]) error { return errors.New("no route to the bank") })
				s.becomes(first, func(j sluice.Job) bool { return j.State == sluice.StateDead })
				return id
			},
		},
		{
			sees: fewStart, cause: "the tenant's rate is too low", asks: "doctor", says: `mail: job .* does not start: the rate of 1/h of tenant "acme" has its next token at`, mend: "sluice tenants set acme rate=N/s --queue mail",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.queue("mail", func(settings *sluice.Settings) { settings.TenantRate = sluice.Rate{Jobs: 1, Per: time.Hour} })
				id := s.add("mail", 2, sluice.EnqueueOptions{Tenant: "acme"})
				s.work("mail", nothing)
				s.until("the token is taken", func() bool { return s.count("mail", sluice.StateCompleted) == 1 })
				return s.waiting("mail", id)
			},
		},
		{
			sees: notStarted, cause: "it is to be tried again much later", asks: "doctor", says: `mail: job .* does not start: it is due at .*, after failed attempt 1: no route to the bank`, mend: "sluice run-now ", log: "no route to the bank",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.queue("mail", longBackoff)
				id := s.add("mail", 1, sluice.EnqueueOptions{})
				s.work("mail", func(context.Context, *worker.Job[json.RawMessage]) error { return errors.New("no route to the bank") })
				s.becomes(id, func(j sluice.Job) bool { return j.Attempts == 1 && j.State == sluice.StateQueued })
				return id
			},
		},
		{
			sees: failing, cause: "the handler takes longer than its timeout", asks: "why", says: `it is dead since .*: attempt timed out after 20ms`, mend: "sluice settings set mail timeout=TIME", alert: "success-rate", log: "timed out",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.queue("mail", func(settings *sluice.Settings) { settings.Timeout, settings.MaxAttempts = 20*time.Millisecond, 1 })
				id := s.add("mail", 1, sluice.EnqueueOptions{})
				s.work("mail", untilTheEnd)
				s.becomes(id, func(j sluice.Job) bool { return j.State == sluice.StateDead })
				return id
			},
		},
		{
			sees: failing, cause: "the payload is not what the handler reads", asks: "why", says: `it is dead since .*: .*payload`, mend: "let the handler read the payload", alert: "success-rate", log: "payload",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				id := s.add("mail", 1, sluice.EnqueueOptions{MaxAttempts: 1})
				w := worker.New(s.store, worker.Options{Poll: 50 * time.Millisecond, Logger: s.logger})
				worker.Handle(w, sluice.QueueOf[int]("mail"), func(context.Context, *worker.Job[int]) error { return nil }, worker.QueueOptions{})
				s.start(w.Run)
				s.becomes(id, func(j sluice.Job) bool { return j.State == sluice.StateDead })
				return id
			},
		},
	}
}
