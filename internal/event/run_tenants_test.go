package event_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/tenancy"
)

func tenants(t *testing.T, s *shop) {
	s.queue("mail", func(*sluice.Settings) {})
	_, err := tenancy.AddTier(s.ctx, s.store, "free", act)
	must(t, err)
	_, err = tenancy.SetTier(s.ctx, s.store, "acme", "free", act)
	must(t, err)
	_, err = tenancy.ChangeLimits(s.ctx, s.store, tenancy.Limits{Tier: "free"}, act, func(l *tenancy.Limits) error {
		one := 1
		l.Concurrency = &one
		return nil
	})
	must(t, err)
	for range 3 {
		s.add("mail", `"slow"`, "acme")
	}
	s.add("mail", `"fine"`, "ghost")
	s.hire("mail")
	s.after(15 * time.Second)
}

// deletedTenants claims jobs of deleted tenants. The worker must log each tenant once, also one that is deleted while
// the worker runs.
func deletedTenants(t *testing.T, s *shop) {
	journal := s.logger.Handler().(*journal)
	before := journal.count(event.TenantUnknown)
	s.queue("mail", func(q *sluice.Settings) { q.TenantConcurrency = 5 })
	_, err := tenancy.AddTier(s.ctx, s.store, "free", act)
	must(t, err)
	for _, tenant := range []string{"gone", "going"} {
		_, err = tenancy.SetTier(s.ctx, s.store, tenant, "free", act)
		must(t, err)
	}
	must(t, tenancy.Delete(s.ctx, s.store, "gone", act))
	s.hire("mail")
	for range 3 {
		for _, tenant := range []string{"never stored", "gone", "going"} {
			s.add("mail", `"fine"`, tenant)
		}
		s.after(20 * time.Second)
	}
	if told := journal.count(event.TenantUnknown) - before; told != 1 {
		t.Errorf("it was told %d times, want once, of the tenant that is gone", told)
	}
	must(t, tenancy.Delete(s.ctx, s.store, "going", act))
	s.after(15 * time.Minute)
	for range 2 {
		s.add("mail", `"fine"`, "going")
		s.after(20 * time.Second)
	}
	if told := journal.count(event.TenantUnknown) - before; told != 2 {
		t.Errorf("it was told %d times, want of both tenants", told)
	}
}

// duplicates enqueues duplicates. The client must log the first 10, and then how many more there were.
func duplicates(t *testing.T, s *shop) {
	journal := s.logger.Handler().(*journal)
	before := journal.count(event.LinesLeftOut)
	client := sluice.NewClient(s.store.Store, sluice.ClientOptions{Logger: s.logger})
	for range 13 {
		_, err := client.Enqueue(s.ctx, sluice.NewJob{Queue: "mail", Payload: []byte("1"), EnqueueOptions: sluice.EnqueueOptions{Key: "order-1", Tenant: "acme"}})
		must(t, err)
	}
	if told := journal.count(event.JobDuplicate); told != 10 {
		t.Errorf("%d of 12 duplicates are told, want the first 10", told)
	}
	s.after(11 * time.Second)
	if told := journal.count(event.LinesLeftOut) - before; told != 1 {
		t.Errorf("it is told %d times how many more there were", told)
	}
}
