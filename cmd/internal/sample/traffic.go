package sample

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/search"
)

// happening is something that the shop does every so often.
type happening struct {
	first, every int // seconds
	do           func(context.Context) error
}

// traffic makes jobs, and lets people act, until ctx ends.
func (s *Shop) traffic(ctx context.Context) error {
	all := []happening{
		{1, 1, s.trickle},
		{5, 60, s.sale},
		{20, 45, s.noise},
		{30, 240, s.redrive},
		{100, 180, s.makeBatch},
		{130, 150, s.makeFlow},
		{60, 200, s.tune},
		{90, 600, s.nextWave},
	}
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-second.C:
		}
		s.round++
		for _, h := range all {
			if s.round < h.first || (s.round-h.first)%h.every != 0 {
				continue
			}
			if err := h.do(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("sample traffic: %w", err)
			}
		}
	}
}

func payment(tenant string, n int) sluice.NewJob {
	return sluice.NewJob{Queue: payments, Payload: payload(body{Account: fmt.Sprintf("DE%020d", 7919*n), Cents: 100 + 37*n%5000}), EnqueueOptions: sluice.EnqueueOptions{
		Tenant: tenant, Key: fmt.Sprintf("order-%s-%d", tenant, n), Labels: map[string]string{"region": []string{"eu", "us", "asia"}[n%3]}, Priority: 3 + n%4,
	}}
}

func mail(n int) sluice.NewJob {
	return sluice.NewJob{Queue: mails, Payload: payload(body{To: fmt.Sprintf("customer-%d@example.com", n), Subject: "Your order"}), EnqueueOptions: sluice.EnqueueOptions{Tenant: tenants[n%6]}}
}

func crawlOf(n int) sluice.NewJob {
	host := []string{"shop.example", "news.example", "busy.example"}[n%3]
	return sluice.NewJob{Queue: crawls, Payload: payload(body{URL: fmt.Sprintf("https://%s/page/%d", host, n)}), EnqueueOptions: sluice.EnqueueOptions{LimitKey: host}}
}

func order(tenant string, n int) sluice.NewJob {
	items := []string{"lamp", "chair", "table"}
	return sluice.NewJob{Queue: orders, Payload: payload(body{Items: items[n%3:]}), EnqueueOptions: sluice.EnqueueOptions{Key: fmt.Sprintf("order-%s-%d", tenant, n), Tenant: tenant}}
}

// wave is many renewals that fall due at the same instant.
func wave(jobs int, in time.Duration) (all []sluice.NewJob) {
	due := time.Now().Add(in).Truncate(time.Minute).Add(time.Minute)
	for n := range jobs {
		all = append(all, sluice.NewJob{Queue: renewals, Payload: payload(body{Account: fmt.Sprintf("subscriber-%d", n)}), EnqueueOptions: sluice.EnqueueOptions{DueAt: due, Tenant: tenants[n%6]}})
	}
	return all
}

// trickle is the work of a second.
func (s *Shop) trickle(ctx context.Context) error {
	n := 1000 + s.round
	jobs := []sluice.NewJob{payment(tenants[1+n%4], n)}
	if n%2 == 0 {
		jobs = append(jobs, mail(n))
	}
	if n%5 == 0 {
		jobs = append(jobs, order(tenants[n%6], n))
	}
	if n%6 == 0 {
		jobs = append(jobs, crawlOf(n/6))
	}
	if n%8 == 0 {
		refund := payment(tenants[1+n%4], n)
		refund.Queue, refund.OrderKey = refunds, refund.Tenant
		jobs = append(jobs, refund)
	}
	_, err := s.client.EnqueueMany(ctx, jobs)
	return err
}

// sale lets the noisy tenant order so much that it has most of the jobs in flight, for most of a minute.
func (s *Shop) sale(ctx context.Context) error { return s.flood(ctx, 90, order) }

// noise is a tenant that sends a lot at once.
func (s *Shop) noise(ctx context.Context) error { return s.flood(ctx, 50, payment) }

// flood enqueues many jobs of the noisy tenant at once.
func (s *Shop) flood(ctx context.Context, count int, of func(tenant string, n int) sluice.NewJob) error {
	var jobs []sluice.NewJob
	for n := range count {
		jobs = append(jobs, of(tenants[0], 10_000+100*s.round+n))
	}
	_, err := s.client.EnqueueMany(ctx, jobs)
	return err
}

// redrive requeues dead payments slowly, some first.
func (s *Shop) redrive(ctx context.Context) error {
	of := operation.Operation{
		Kind: operation.KindRequeue, Query: search.Query{Queue: payments, States: []sluice.State{sluice.StateDead}, Error: "timed out"},
		Rate: sluice.RatePerSecond(0.2), Canary: 2, StopIfFailed: 0.9, Limit: 20,
	}
	found, err := operation.Preview(ctx, s.store, of, 0)
	if err != nil {
		return err
	}
	of.Expected, of.ExpectedMore = found.Matched, found.More
	_, err = operation.Start(ctx, s.store, of, by(ada, "the bank is back"))
	return err
}

// tune changes a setting, as people do.
func (s *Shop) tune(ctx context.Context) error {
	rate := float64(4 + s.round/200%3)
	_, err := s.client.ChangeSettings(ctx, mails, by([]string{ada, bob}[s.round/200%2], "the mail server is faster than we thought"), func(t *sluice.Settings) error {
		t.Rate = sluice.RatePerSecond(rate)
		return nil
	})
	return err
}

func (s *Shop) nextWave(ctx context.Context) error {
	_, err := s.client.EnqueueMany(ctx, wave(150, 9*time.Minute))
	return err
}

// makeBatch stores an import of rows.
func (s *Shop) makeBatch(ctx context.Context) error {
	b, err := batch.Open(ctx, s.store, batch.Batch{Name: fmt.Sprintf("price-list-%d", 1+s.round/180), Callbacks: batch.Callbacks{OnComplete: &batch.Callback{Queue: mails}}}, by(shop, ""))
	if err != nil {
		return err
	}
	var jobs []sluice.NewJob
	for row := range 80 {
		jobs = append(jobs, sluice.NewJob{Queue: imports, Payload: payload(body{Row: row + 1}), EnqueueOptions: sluice.EnqueueOptions{Batch: b.ID}})
	}
	if _, err := s.client.EnqueueMany(ctx, jobs); err != nil {
		return err
	}
	return batch.Close(ctx, s.store, b.ID, by(shop, ""))
}

// makeFlow starts a flow with a map: one page per account.
func (s *Shop) makeFlow(ctx context.Context) error {
	_, err := flow.Start(ctx, s.store, flow.Flow{Name: "statements", Nodes: []flow.Node{
		{Name: "accounts", Queue: ledgers},
		{Name: "pages", Queue: pages, After: []string{"accounts"}, Over: "accounts", Payload: payload(map[string]string{"account": "{{item}}"})},
		{Name: "sum", Queue: ledgers, After: []string{"pages"}},
		{Name: "mail", Queue: mails, After: []string{"sum"}, Payload: payload(body{To: "board@example.com", Subject: "Statements"})},
	}})
	return err
}
