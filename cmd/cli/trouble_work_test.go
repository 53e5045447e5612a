package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/tenancy"
	"github.com/sluice-queue/sluice/worker"
)

const (
	notStarted = "Jobs wait and none starts"
	fewStart   = "Some jobs wait, others start"
	notEnding  = "A job runs and does not end"
	failing    = "Jobs fail"
	slow       = "Everything is slow"
	noCommand  = "No command works"
)

// troublesOfWork are troubles of queues, limits and workers.
func troublesOfWork() []trouble {
	return []trouble{
		{
			sees: notStarted, cause: "no worker runs", asks: "doctor", says: `mail has jobs ready \(1\) and no worker`, mend: "sluice work mail -- COMMAND", alert: "unserved",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				return s.add("mail", 1, sluice.EnqueueOptions{})
			},
		},
		{
			sees: notStarted, cause: "the workers serve another queue", asks: "why", says: `the workers that run serve other queues: \["mails"\]`, mend: "sluice work mail -- COMMAND", alert: "unserved",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.work("mails", nothing)
				return s.add("mail", 1, sluice.EnqueueOptions{})
			},
		},
		{
			sees: notStarted, cause: "the worker was killed", asks: "why", says: `the last one is .*: the process was last heard of at .*: it was killed`, mend: "sluice work mail -- COMMAND", alert: "unserved",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				worker := start(s.T, s.db, "work", "mail", "--", "true")
				s.until("the worker beats", func() bool { return s.told(func(h presence.Holder) bool { return h.Role == presence.RoleWorker }) })
				s.kill(worker)
				s.silence()
				return s.add("mail", 1, sluice.EnqueueOptions{})
			},
		},
		{
			sees: notStarted, cause: "the worker is of an old version", asks: "holders", says: `its program is too old for the schema, which needs one that knows step`, mend: "deploy the newer program; start the worker again: sluice work mail -- COMMAND", alert: "unserved", log: "program too old for the schema",
			make: func(s *scene) sluice.ID {
				s.open()
				worker := start(s.T, s.db, "work", "mail", "--poll", "100ms", "--", "true")
				s.until("the worker beats", func() bool { return s.told(func(h presence.Holder) bool { return h.Role == presence.RoleWorker }) })
				s.sql("insert into sluice_migration values (99, 'future', 'x', 99, cast(1000000 * unixepoch('subsec') as integer))")
				_, _ = s.log.Write([]byte(worker.finds(s.T, "(.*program too old for the schema.*)")))
				s.kill(worker)
				s.beNewer()
				s.silence()
				s.tend(nil)
				return s.add("mail", 1, sluice.EnqueueOptions{})
			},
		},
		{
			sees: notStarted, cause: "the queue was paused and forgotten", asks: "why", says: `ada paused queue "mail" at .*: the bank is down`, mend: "sluice resume mail", alert: "paused",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.work("mail", nothing)
				s.queue("mail", func(*sluice.Settings) {})
				s.ok(s.client.Pause(s.Context(), "mail", troubler))
				return s.add("mail", 1, sluice.EnqueueOptions{})
			},
		},
		{
			sees: fewStart, cause: "the tenant is paused", asks: "doctor", says: `mail: job .* does not start: tenant "acme" is paused`, mend: "sluice resume mail --tenant acme",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.queue("mail", func(*sluice.Settings) {})
				_, err := tenancy.Pause(s.Context(), s.store, "mail", "acme", 0, troubler)
				s.ok(err)
				id := s.add("mail", 1, sluice.EnqueueOptions{Tenant: "acme"})
				s.work("mail", nothing)
				return id
			},
		},
		{
			sees: fewStart, cause: "the tenant is at its limit", asks: "doctor", says: `mail: job .* does not start: 1 of tenant "acme" in flight, and 1 are allowed`, mend: "sluice tenants set acme concurrency=N",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.queue("mail", func(settings *sluice.Settings) { settings.TenantConcurrency = 1 })
				id := s.add("mail", 2, sluice.EnqueueOptions{Tenant: "acme"})
				s.work("mail", untilTheEnd)
				s.until("one runs", func() bool { return s.claimed("mail") == 1 })
				return s.waiting("mail", id)
			},
		},
		{
			sees: fewStart, cause: "a job that is stuck holds the only place", asks: "doctor", says: `mail: job .* does not start: 1 in flight, and 1 are allowed`, mend: "sluice jobs --queue mail --state claimed",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.queue("mail", func(settings *sluice.Settings) { settings.Concurrency = 1 })
				id := s.add("mail", 2, sluice.EnqueueOptions{})
				s.work("mail", untilTheEnd)
				s.until("one runs", func() bool { return s.claimed("mail") == 1 })
				return s.waiting("mail", id)
			},
		},
		{
			sees: fewStart, cause: "the rate is too low for the wave", asks: "why", says: `the rate of 1/h has its next token at`, mend: "sluice settings set mail rate=N/s", alert: "long-backlog",
			make: func(s *scene) sluice.ID {
				s.open()
				s.queue("mail", func(settings *sluice.Settings) { settings.Rate = sluice.Rate{Jobs: 1, Per: time.Hour} })
				s.add("mail", 20, sluice.EnqueueOptions{})
				s.tend(nil) // upkeep counts the jobs
				s.work("mail", nothing)
				s.until("the token is taken", func() bool { return s.count("mail", sluice.StateCompleted) == 1 })
				return s.waiting("mail", sluice.ID{})
			},
		},
		{
			sees: failing, cause: "the handler panics", asks: "why", says: `after failed attempt 1: .*no such template`, mend: "sluice run-now ", log: "no such template",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.queue("mail", longBackoff)
				id := s.add("mail", 1, sluice.EnqueueOptions{})
				s.work("mail", func(context.Context, *worker.Job[json.RawMessage]) error { panic("no such template") })
				s.becomes(id, func(j sluice.Job) bool { return j.Attempts == 1 && j.State == sluice.StateQueued })
				return id
			},
		},
		{
			sees: failing, cause: "the handler always fails", asks: "why", says: `it is dead since .*: no route to the bank`, mend: "sluice requeue ", alert: "success-rate", log: "no route to the bank",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				id := s.add("mail", 1, sluice.EnqueueOptions{MaxAttempts: 1})
				s.work("mail", func(context.Context, *worker.Job[json.RawMessage]) error { return errors.New("no route to the bank") })
				s.becomes(id, func(j sluice.Job) bool { return j.State == sluice.StateDead })
				return id
			},
		},
		{
			sees: failing, cause: "the lease is shorter than the job", asks: "why", says: `it is dead since .*: poison: `, mend: "sluice settings set mail lease=TIME", alert: "lease-expiry", log: "jobs recovered", besides: "success-rate",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.queue("mail", func(settings *sluice.Settings) {
					settings.MaxRecoveries, settings.Lease, settings.RecoverInterval = 1, 100*time.Millisecond, 100*time.Millisecond
				})
				id := s.add("mail", 1, sluice.EnqueueOptions{})
				ended := make(chan struct{})
				s.workAt(unrenewed{s.store}, "mail", func(context.Context, *worker.Job[json.RawMessage]) error {
					<-ended
					return nil
				})
				s.Cleanup(func() { close(ended) })
				s.becomes(id, func(j sluice.Job) bool { return j.State == sluice.StateDead })
				return id
			},
		},
		{
			sees: notEnding, cause: "the worker was killed while the job ran", asks: "holders", says: `its 1 jobs are kept from others until the last lease ends at`, mend: "sluice work mail -- COMMAND",
			make: func(s *scene) sluice.ID {
				s.open()
				s.tend(nil)
				s.queue("mail", func(settings *sluice.Settings) { settings.Lease = time.Hour })
				id := s.add("mail", 1, sluice.EnqueueOptions{})
				worker := start(s.T, s.db, "work", "mail", "--", "sh", "-c", "echo the program runs >&2; exec sleep 1000")
				worker.says(s.T, "the program runs")
				s.kill(worker)
				s.silence()
				return id
			},
		},
		{
			sees: notEnding, cause: "no upkeep runs", asks: "why", says: `its lease ended at .*; no upkeep runs`, mend: "sluice upkeep", unready: "leaders",
			make: func(s *scene) sluice.ID {
				s.open()
				s.add("mail", 1, sluice.EnqueueOptions{})
				id := s.claim("mail", time.Millisecond)
				time.Sleep(5 * time.Millisecond)
				return id
			},
		},
	}
}

// unrenewed is a store that refuses renewals, so that a worker loses its lease during a long job.
type unrenewed struct{ sluice.Store }

// Unwrap returns the decorated store.
func (s unrenewed) Unwrap() sluice.Store { return s.Store }

func (unrenewed) Renew(context.Context, []sluice.Renewal) ([]sluice.ID, error) {
	return nil, sluice.ErrUnavailable
}

// beNewer makes this program the newer one that made step 99: the last step that it knows takes the place of step 99.
// Older programs must not work with that step. They knew only a made-up step 0.
func (s *scene) beNewer() {
	s.Helper()
	s.sql(`insert into sluice_migration (version, name, checksum, works_from, applied_at)
		select 0, 'of before', 'x', 0, applied_at from sluice_migration where version = 1;
		update sluice_migration set works_from = version, applied_at = (select applied_at from sluice_migration where version = 99)
		where version = (select max(version) from sluice_migration where version < 99);
		delete from sluice_migration where version = 99`)
}

// kill ends a process with SIGKILL, as the kernel does when memory runs out.
func (s *scene) kill(p *process) {
	s.Helper()
	s.ok(p.Process.Kill())
	p.ends(s.T, -1)
}

// untilTheEnd is a handler that runs until the worker ends.
func untilTheEnd(ctx context.Context, _ *worker.Job[json.RawMessage]) error {
	<-ctx.Done()
	return ctx.Err()
}

func (s *scene) claimed(queue string) int { return s.count(queue, sluice.StateClaimed) }

func (s *scene) count(queue string, state sluice.State) int {
	s.Helper()
	page, err := s.client.Jobs(s.Context(), sluice.JobFilter{Queue: queue, States: []sluice.State{state}})
	s.ok(err)
	return len(page.Jobs)
}

// waiting returns a queued job of a queue, or otherwise if there is none.
func (s *scene) waiting(queue string, otherwise sluice.ID) sluice.ID {
	s.Helper()
	page, err := s.client.Jobs(s.Context(), sluice.JobFilter{Queue: queue, States: []sluice.State{sluice.StateQueued}})
	s.ok(err)
	if len(page.Jobs) == 0 {
		return otherwise
	}
	return page.Jobs[0].ID
}
