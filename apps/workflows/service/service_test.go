package service_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/workflows/records"
	"github.com/sluice-queue/sluice/apps/workflows/service"
	"github.com/sluice-queue/sluice/tenancy"
)

// The queue and the concurrency of the tiers are those that the source asks for. Changes of an operator survive a
// restart of the service.
func TestTheQueueAndTheTiersAreThoseOfTheSource(t *testing.T) {
	t.Parallel()
	d, err := records.Open(t.Context(), filepath.Join(t.TempDir(), "workflows.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	capacities := func(want map[string]int) {
		t.Helper()
		if err := service.Prepare(t.Context(), d, service.TaskQueue); err != nil {
			t.Fatal(err)
		}
		for tier, capacity := range want {
			limits, err := tenancy.LimitsOf(t.Context(), d.Store, tier, "")
			if err != nil || len(limits) != 1 || limits[0].Queue != records.Queue || limits[0].Concurrency == nil || *limits[0].Concurrency != capacity {
				t.Errorf("tier %s has the limits %+v, %v; want a capacity of %d", tier, limits, err, capacity)
			}
		}
	}
	capacities(map[string]int{"FREE": 1, "PRO": 5, "ENTERPRISE": 20})
	of := tenancy.Limits{Queue: records.Queue, Tier: "PRO"}
	_, err = tenancy.ChangeLimits(t.Context(), d.Store, of, sluice.Act{By: "ada"}, func(l *tenancy.Limits) error {
		ten := 10
		l.Concurrency = &ten
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	capacities(map[string]int{"FREE": 1, "PRO": 10, "ENTERPRISE": 20})
	q, err := d.Client.Queue(t.Context(), records.Queue)
	if s := q.Settings; err != nil || s.Batch != 20 || s.RunRef != "execution-{id}" || s.RetryRuns || !s.Fair || s.Lease != time.Minute || s.Engine != "temporal" {
		t.Errorf("the settings are %+v, %v", s, err)
	}
}
