package sample

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/search"
	"github.com/sluice-queue/sluice/tenancy"
)

// ErrOccupied: the store has queues of the shop's names that are not the shop's, or others though the shop is to be alone. The shop
// would run their jobs with its handlers.
var ErrOccupied = errors.New("the store has work of its own, which the made-up shop would run")

// ErrPart: the store has a part of the shop, since somebody ended an earlier Prepare. Its pages would lack things.
var ErrPart = errors.New("the store has only a part of the made-up shop, because an earlier fill was ended")

// Prepare fills a store, unless it has the shop already. It changes nothing where it returns [ErrOccupied] or [ErrPart].
func (s *Shop) Prepare(ctx context.Context) error {
	names := []string{payments, refunds, mails, reports, exports, renewals, imports, crawls, orders, ledgers, pages}
	ours, err := s.store.Queues(ctx, sluice.QueueFilter{Names: names})
	if err != nil {
		return err
	}
	if len(ours) > 0 {
		return s.checkWhole(ctx)
	}
	others, err := s.store.Queues(ctx, sluice.QueueFilter{Limit: 1})
	switch {
	case err != nil:
		return err
	case s.alone && len(others) > 0:
		return ErrOccupied
	}
	for _, step := range []func(context.Context) error{
		s.makeLimits, s.makeQueues, s.makeTenants, s.makeHistory, s.makeSchedules, s.makeAlerts, s.makeNotes, s.makeJobs, s.makeBatch, s.makeFlow, s.cancelSome, s.pauseExports,
	} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("sample data: %w", err)
		}
	}
	return nil
}

// checkWhole says why the queues of the shop's names are not those of a whole shop. The audit tells: the first queue is made by the
// shop, and the last step is a pause.
func (s *Shop) checkWhole(ctx context.Context) error {
	if begun, err := s.audited(ctx, payments, shop, sampleData); err != nil || !begun {
		return cmp.Or(err, ErrOccupied)
	}
	if whole, err := s.audited(ctx, exports, bob, stockCount); err != nil || !whole {
		return cmp.Or(err, ErrPart)
	}
	return nil
}

// audited reports whether somebody changed a queue for a reason.
func (s *Shop) audited(ctx context.Context, queue, actor, reason string) (bool, error) {
	entries, err := s.store.Audit(ctx, sluice.AuditFilter{Object: audit.ObjectQueue, Name: queue, Actor: actor, Limit: 10_000})
	return slices.ContainsFunc(entries, func(e sluice.AuditEntry) bool { return e.Reason == reason }), err
}

// The reasons of the first and the last change of a queue.
const (
	sampleData = "sample data"
	stockCount = "the warehouse counts its stock"
)

// pauseExports pauses a queue. It is the last step, by which a whole shop is known.
func (s *Shop) pauseExports(ctx context.Context) error {
	return s.client.Pause(ctx, exports, by(bob, stockCount))
}

// makeQueues stores the queues.
func (s *Shop) makeQueues(ctx context.Context) error {
	perSecond := sluice.RatePerSecond
	for _, q := range []struct {
		name   string
		change func(*sluice.Settings)
	}{
		{payments, func(t *sluice.Settings) { t.Rate, t.Fair, t.Limits, t.MaxAttempts = perSecond(3), true, "bank", 2 }},
		{refunds, func(t *sluice.Settings) { t.Limits, t.MaxAttempts = "bank", 2 }},
		{mails, func(t *sluice.Settings) { t.MaxAttempts = 2 }},
		{reports, func(t *sluice.Settings) { t.Concurrency = 2 }},
		{exports, func(*sluice.Settings) {}},
		{renewals, func(t *sluice.Settings) { t.Rate, t.ClaimAhead = perSecond(2), 5*time.Second }},
		{imports, func(t *sluice.Settings) { t.Concurrency = 1 }},
		{crawls, func(t *sluice.Settings) { t.Limits = "host" }},
		{orders, func(t *sluice.Settings) {
			t.Engine, t.RunType, t.RunResults, t.Audit, t.Rate = Engine, "ship-order", true, sluice.AuditFull, perSecond(4)
			t.Concurrency = 40 // not fair: the noisy tenant takes nearly all of it
		}},
		{ledgers, func(*sluice.Settings) {}},
		{pages, func(t *sluice.Settings) { t.Concurrency = 3 }},
	} {
		settings := sluice.DefaultSettings()
		settings.Backoff.Base = 20 * time.Second
		q.change(&settings)
		if _, err := s.client.EnsureQueue(ctx, q.name, settings, by(shop, sampleData)); err != nil {
			return err
		}
	}
	return nil
}

// makeLimits stores the limits that queues share.
func (s *Shop) makeLimits(ctx context.Context) error {
	_, bank := limit.Change(ctx, s.store, "bank", by(ada, "the contract with the bank"), func(l *limit.Limit) error {
		l.Rate, l.Concurrency = sluice.RatePerSecond(4), 8
		return nil
	})
	_, host := limit.Change(ctx, s.store, "host", by(bob, "be polite"), func(l *limit.Limit) error {
		l.PerKey, l.Concurrency = true, 1
		return nil
	})
	return errors.Join(bank, host)
}

// tenants of the shop, the noisy one first.
var tenants = []string{"acme", "globex", "initech", "hooli", "umbrella", "wonka"}

// makeTenants stores tiers, and puts the tenants into them.
func (s *Shop) makeTenants(ctx context.Context) error {
	for i, tier := range tenancy.PresetTiers() {
		if _, err := tenancy.AddTier(ctx, s.store, tier.Tier, by(ada, "the price list")); err != nil {
			return err
		}
		if _, err := tenancy.ChangeLimits(ctx, s.store, tenancy.Limits{Queue: payments, Tier: tier.Tier}, by(ada, "the price list"), func(l *tenancy.Limits) error {
			concurrency, weight := 1+2*i, 1+i
			l.Concurrency, l.Weight = &concurrency, &weight
			return nil
		}); err != nil {
			return err
		}
		for _, tenant := range tenants[2*i : 2*i+2] {
			if _, err := tenancy.SetTier(ctx, s.store, tenant, tier.Tier, by(ada, "their contract")); err != nil {
				return err
			}
		}
	}
	_, err := tenancy.Pause(ctx, s.store, payments, "wonka", time.Hour, by(bob, "they change their bank"))
	return err
}

// makeHistory changes settings as people do: with a slip, and back.
func (s *Shop) makeHistory(ctx context.Context) error {
	rate := func(perSecond float64) func(*sluice.Settings) error {
		return func(t *sluice.Settings) error { t.Rate = sluice.RatePerSecond(perSecond); return nil }
	}
	_, slip := s.client.ChangeSettings(ctx, payments, by(bob, "catch up"), rate(300))
	_, undone := changes.Undo(ctx, s.client, payments, by(ada, "a zero too many"))
	_, sale := changes.For(ctx, s.client, renewals, 30*time.Minute, by(ada, "the sale"), rate(3))
	_, night := changes.Schedule(ctx, s.client, mails, changes.Window{From: "22:00", To: "06:00", Zone: "Europe/Berlin"}, map[string]string{"rate": "20/s"}, by(ada, "nobody reads at night"))
	return errors.Join(slip, undone, sale, night)
}

// makeSchedules stores schedules: one each minute, one each night, and a paused one.
func (s *Shop) makeSchedules(ctx context.Context) error {
	_, minute := schedule.Set(ctx, s.store, "sales-each-minute", schedule.Definition{Queue: reports, Every: time.Minute, Overlap: schedule.Skip}, by(ada, "the screen in the hall"))
	_, night := schedule.Set(ctx, s.store, "close-of-day", schedule.Definition{Queue: reports, Cron: "0 2 * * *", Zone: "Europe/Berlin"}, by(ada, "the bookkeeping"))
	_, weekly := schedule.Set(ctx, s.store, "newsletter", schedule.Definition{Queue: mails, Cron: "30 9 * * MON", Zone: "Europe/Berlin", Payload: payload(body{To: "all", Subject: "This week"})}, by(bob, "every Monday"))
	_, paused := schedule.Pause(ctx, s.store, "newsletter", "no text yet", by(bob, "no text yet"))
	return errors.Join(minute, night, weekly, paused)
}

// makeAlerts lets an alert fire soon, and silences another.
func (s *Shop) makeAlerts(ctx context.Context) error {
	_, _, dead := alert.SetRule(ctx, s.store, "dead-letters", "", by(ada, "the shop is small"), func(r *alert.Rule) error { r.Threshold, r.For = 5, 0; return nil })
	_, _, paused := alert.SetRule(ctx, s.store, "paused", "", by(ada, "nobody forgets a pause"), func(r *alert.Rule) error { r.For = 0; return nil })
	_, silence := alert.StartSilence(ctx, s.store, alert.Silence{Rule: "dead-letters", Queue: mails, During: 2 * time.Hour}, by(bob, "the mail server moves"))
	return errors.Join(dead, paused, silence)
}

// makeNotes keeps notes on groups that will come: one has an owner, and one was resolved too early.
func (s *Shop) makeNotes(ctx context.Context) error {
	account := deadletter.Fingerprint(payments, fmt.Sprintf(closedAccount, "DE00000000000000007919"))
	_, owned := deadletter.Change(ctx, s.store, account, deadletter.NoteChange{Text: new("Ask the tenant for a new account, then redrive."), Owner: new("team-money")}, by(ada, "seen each month"))
	_, early := deadletter.Change(ctx, s.store, deadletter.Fingerprint(mails, fmt.Sprintf(noMailbox, "[redacted:email]")), deadletter.NoteChange{Text: new("The list of addresses was old."), Resolved: new(true)}, by(bob, "the list is new"))
	return errors.Join(owned, early)
}

// makeJobs stores the first jobs.
func (s *Shop) makeJobs(ctx context.Context) error {
	var jobs []sluice.NewJob
	for n := range 60 {
		jobs = append(jobs, payment(tenants[0], n))
	}
	for n := range 40 {
		jobs = append(jobs, payment(tenants[1+n%5], 100+n))
	}
	for n := range 80 {
		jobs = append(jobs, mail(n))
	}
	for n := range 18 {
		jobs = append(jobs, sluice.NewJob{Queue: exports, Payload: payload(body{Account: tenants[n%6]}), EnqueueOptions: sluice.EnqueueOptions{Tenant: tenants[n%6], Priority: 1 + n%9}})
	}
	for n := range 24 {
		jobs = append(jobs, crawlOf(n))
	}
	jobs = append(jobs, sluice.NewJob{Queue: reports, Payload: payload(body{To: "the board"})})
	jobs = append(jobs, wave(220, 4*time.Minute)...)
	jobs = append(jobs, wave(400, 20*time.Minute)...)
	jobs = append(jobs, wave(150, 3*time.Hour)...)
	jobs = append(jobs, wave(120, 20*time.Hour)...)
	if _, err := s.client.EnqueueMany(ctx, jobs); err != nil {
		return err
	}
	return s.holdSome(ctx)
}

// holdSome stores jobs of which some are held, and one by its producer.
func (s *Shop) holdSome(ctx context.Context) error {
	var jobs []sluice.NewJob
	for n := range 5 {
		job := payment("globex", 500+n)
		job.Delay = time.Hour
		jobs = append(jobs, job)
	}
	jobs[4].Hold = "over the limit of one clerk: a second one looks at it"
	receipts, err := s.client.EnqueueMany(ctx, jobs)
	if err != nil {
		return err
	}
	return hold.Hold(ctx, s.store, []sluice.ID{receipts[0].ID, receipts[1].ID, receipts[2].ID}, by(bob, "the customer called: wrong account"))
}

// cancelSome cancels waiting jobs of a tenant, slowly.
func (s *Shop) cancelSome(ctx context.Context) error {
	op := operation.Operation{
		Kind: operation.KindCancel, Query: search.Query{Queue: renewals, Tenant: "wonka", States: []sluice.State{sluice.StateQueued}}, Rate: sluice.RatePerSecond(0.1),
	}
	found, err := operation.Preview(ctx, s.store, op, 0)
	if err != nil {
		return err
	}
	op.Expected = found.Matched
	_, err = operation.Start(ctx, s.store, op, by(ada, "wonka ends its contract"))
	return err
}
