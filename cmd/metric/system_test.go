package metric_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/metric"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/pressure"
)

func TestARunIsToldInExactNumbers(t *testing.T) {
	onEveryStore(t, func(s *system) {
		s.run()
		for _, c := range []struct {
			event, reason string
			queue         string
			want          float64
		}{
			{"enqueue", "", "mail", 14},
			{"claim", "", "mail", 17},
			{"complete", "", "mail", 11},
			{"retry", "", "mail", 2},
			{"bury", "attempts_spent", "mail", 2},
			{"bury", "permanent", "mail", 1},
			{"release", "snoozed", "mail", 1},
			{"enqueue", "", "parcels", 6},
			{"claim", "", "parcels", 6},
			{"dispatch", "", "parcels", 6},
			{"complete", "", "parcels", 5},
			{"bury", "run_failed", "parcels", 1},
			{"complete", "", "local:ship", 5},
			{"bury", "attempts_spent", "local:ship", 1},
			{"cancel", "act", "", 1},
		} {
			s.want(c.want, "sluice_moves_total", "queue="+c.queue, "event="+c.event, "reason="+c.reason)
		}
		for name, want := range map[string]float64{
			"sluice_wait_seconds": 17, "sluice_run_seconds": 17, "sluice_total_seconds": 14, "sluice_attempts": 14, "sluice_duplicates_total": 1,
		} {
			s.want(want, name, "queue=mail")
		}
		if got := s.sum("sluice_attempts", "queue=mail"); got != 2+2+1 {
			s.Errorf("%g failed attempts were told, want 5", got)
		}
		if got := s.sum("sluice_batch_jobs", "queue=mail"); got != 17 {
			s.Errorf("the batches have %g jobs, want those of the 17 claims", got)
		}
		s.want(1, "sluice_lease_renewals_total", "queue=hand")
		s.want(1, "sluice_leases_lost_total", "queue=hand")
		s.want(1, "sluice_store_errors_total", "call=job", "kind=refused")
		s.want(6, "sluice_step_errors_total", "step=handle") // two attempts at each of two bad jobs, one of the job that never works, and one run
		s.want(1, "sluice_build_info", "version=1.2.3")
		if s.value("sluice_claims_limited_total", "queue=hand", "by=in_flight") == 0 {
			s.Error("no claim was told to be limited by what is in flight")
		}
		s.wantGauges()
		s.wantDocumented()
	})
}

// wantGauges reads the gauges once.
func (s *system) wantGauges() {
	s.Helper()
	s.until(4, "sluice_store_call_seconds", "call=heartbeat")
	s.shareLimit()
	s.gauges.Read(s.Context())
	for _, c := range []struct {
		want   float64
		name   string
		labels string
	}{
		{5, "sluice_queues", ""},
		{3, "sluice_jobs", "queue=mail state=dead"},
		{0, "sluice_jobs", "queue=mail state=ready"},
		{3, "sluice_jobs", "queue=still state=ready"},
		{1, "sluice_jobs", "queue=hand state=claimed"},
		{1, "sluice_jobs", "queue=hand state=scheduled"},
		{1, "sluice_jobs", "queue=hand state=blocked"},
		{3, "sluice_blocked_jobs", "queue=still reason=paused"},
		{1, "sluice_blocked_jobs", "queue=hand reason=order"},
		{1, "sluice_queue_paused", "queue=still"},
		{0.75, "sluice_waiting_used", "queue=still"},
		{2, "sluice_refused_total", "queue=still"},
		{0, "sluice_shed_total", "queue=still"},
		{0, "sluice_queue_paused", "queue=mail"},
		{100_000, "sluice_rate_limit", "queue=mail"},
		{500, "sluice_in_flight_limit", "queue=mail"},
		{1, "sluice_in_flight", "queue=hand"},
		{1, "sluice_limit_in_flight", "limit=bank"},
		{7, "sluice_limit_concurrency", "limit=bank"},
		{1, "sluice_limit_closed", "limit=bank"},
		{1, "sluice_tenant_in_flight", "queue=hand tenant=acme"},
		{2, "sluice_holders", "role=worker"},
		{1, "sluice_holders", "role=dispatcher"},
		{1, "sluice_holders", "role=upkeep"},
		{1, "sluice_queue_holders", "queue=mail role=worker"},
		{0, "sluice_queue_holders", "queue=still role=worker"},
		{0, "sluice_breaker_open", "queue=parcels"},
		{0, "sluice_gauges_errors_total", ""},
	} {
		s.want(c.want, c.name, strings.Fields(c.labels)...)
	}
	if got := s.value("sluice_rate_tokens", "queue=mail"); got < 1 || got > 100_000 {
		s.Errorf("%g tokens are told", got)
	}
	if got := s.value("sluice_oldest_due_seconds", "queue=still"); got <= 0 || got > 600 {
		s.Errorf("the oldest is told to be due since %g seconds", got)
	}
}

// shareLimit lets queue hand share a closed limit.
func (s *system) shareLimit() {
	s.Helper()
	_, err := limit.Change(s.Context(), s.store, "bank", ada, func(l *limit.Limit) error {
		l.Concurrency, l.Closed = 7, true
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	_, err = s.client.ChangeSettings(s.Context(), "hand", ada, func(settings *sluice.Settings) error {
		settings.Limits = "bank"
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
}

// sometimes are metrics that a healthy test system may lack, each with the reason.
var sometimes = map[string]string{
	"sluice_engine_errors_total": "no engine failed", "sluice_health_findings": "nothing is wrong, or it is the machine's",
	"sluice_tenant_concurrency":      "the tenant in flight has none",
	"sluice_postgres_slot_wal_bytes": "there is no slot", "sluice_sqlite_busy_share": "it is told from the second look on",
}

// wantDocumented checks that the scrape has all documented metrics, except those in sometimes, and no others.
func (s *system) wantDocumented() {
	s.Helper()
	scraped := s.scrape()
	kind := "sqlite"
	if _, isPostgres := scraped["sluice_postgres_connections"]; isPostgres {
		kind = "postgres"
	}
	known := make(map[string]bool)
	for _, d := range metric.Names() {
		known[d.Name] = true
		ofOther := kind == "sqlite" && strings.HasPrefix(d.Name, "sluice_postgres_") || kind == "postgres" && strings.HasPrefix(d.Name, "sluice_sqlite_")
		_, excused := sometimes[d.Name]
		family, told := scraped[d.Name]
		if !told && !ofOther && !excused {
			s.Errorf("%s is documented, and is not told", d.Name)
		}
		if told && !strings.EqualFold(family.GetType().String(), d.Type) {
			s.Errorf("%s is a %s, and is documented as a %s", d.Name, family.GetType(), d.Type)
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if !contains(d.Labels, l.GetName()) {
					s.Errorf("%s has a label %s, which is not documented", d.Name, l.GetName())
				}
			}
		}
	}
	for name := range scraped {
		if !known[name] {
			s.Errorf("%s is told, and is not documented", name)
		}
	}
	faults, err := testutil.GatherAndLint(s.registry)
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range faults {
		s.Errorf("%s: %s", f.Metric, f.Text)
	}
	health, err := health.Of(s.Context(), s.store, health.Options{})
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range health.Metrics {
		if !known["sluice_"+health.Kind+"_"+f.Name] {
			s.Errorf("the store tells of %s, which has no metric", f.Name)
		}
	}
}

func contains(all []string, one string) bool {
	for _, a := range all {
		if a == one {
			return true
		}
	}
	return false
}

// run enqueues jobs with every fate, and waits until they have ended.
func (s *system) run() {
	s.Helper()
	s.enqueue("mail", "good", 9, sluice.EnqueueOptions{Tenant: "acme"})
	s.enqueue("mail", "good", 2, sluice.EnqueueOptions{Key: "twin", KeyScope: sluice.ForEver})
	s.enqueue("mail", "bad", 2, sluice.EnqueueOptions{Tenant: "globex"})
	s.enqueue("mail", "never", 1, sluice.EnqueueOptions{})
	s.enqueue("mail", "later", 1, sluice.EnqueueOptions{})
	s.enqueue("parcels", "good", 5, sluice.EnqueueOptions{})
	s.enqueue("parcels", "bad", 1, sluice.EnqueueOptions{})
	s.until(11, "sluice_moves_total", "queue=mail", "event=complete")
	s.until(3, "sluice_moves_total", "queue=mail", "event=bury")
	s.until(5, "sluice_moves_total", "queue=parcels", "event=complete")
	s.until(1, "sluice_moves_total", "queue=parcels", "event=bury")
	s.byHand()
}

// byHand claims jobs of a queue without a worker, and loses the leases.
func (s *system) byHand() {
	s.Helper()
	s.enqueue("still", "good", 3, sluice.EnqueueOptions{})
	job := sluice.NewJob{Queue: "still", Payload: []byte(`"good"`)}
	if _, err := s.client.EnqueueMany(s.Context(), []sluice.NewJob{job, job}); !errors.Is(err, pressure.ErrFull) {
		s.Errorf("two more jobs than a queue may have: %v", err)
	}
	s.enqueue("hand", "good", 2, sluice.EnqueueOptions{Tenant: "acme"})
	s.enqueue("hand", "good", 2, sluice.EnqueueOptions{OrderKey: "one at a time", DueAt: time.Now().Add(time.Hour)})
	claim := sluice.ClaimRequest{Queue: "hand", Limit: 5, Holder: "test", Lease: time.Minute, Token: sluice.NewToken()}
	var held []*sluice.Claim
	for len(held) == 0 {
		claimed, err := s.store.Claim(s.Context(), claim)
		if err != nil {
			s.Fatal(err)
		}
		held = claimed.Jobs
	}
	renewal := []sluice.Renewal{{ID: held[0].ID, Token: held[0].Token, Lease: time.Minute, Queue: "hand"}}
	if lost, err := s.store.Renew(s.Context(), renewal); err != nil || len(lost) > 0 {
		s.Fatal(lost, err)
	}
	if err := s.client.Cancel(s.Context(), []sluice.ID{held[0].ID}, ada); err != nil {
		s.Fatal(err)
	}
	if lost, err := s.store.Renew(s.Context(), renewal); err != nil || len(lost) != 1 {
		s.Fatal(lost, err)
	}
	claim.Token = sluice.NewToken()
	for {
		claimed, err := s.store.Claim(s.Context(), claim)
		if err != nil {
			s.Fatal(err)
		}
		if len(claimed.Jobs) > 0 {
			break
		}
	}
	if _, err := s.client.Job(s.Context(), sluice.NewID()); !errors.Is(err, sluice.ErrNotFound) {
		s.Fatal(err)
	}
}
