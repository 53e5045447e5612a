package postgres_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forecast"
)

func TestWavesAreCountedSliceBySlice(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	client := sluice.NewClient(store, sluice.ClientOptions{})
	var jobs []sluice.NewJob
	for i := range 100 {
		options := sluice.EnqueueOptions{Delay: time.Duration(1+i%3) * time.Hour, Tenant: []string{"acme", "globex"}[i%2]}
		jobs = append(jobs, sluice.NewJob{Queue: "q", Payload: []byte(`{}`), EnqueueOptions: options})
	}
	if _, err := client.EnqueueMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	// The store cuts only tables into slices that the statistics show as large.
	if _, err := store.Pool().Exec(t.Context(), "analyze sluice.live"); err != nil {
		t.Fatal(err)
	}
	for _, slice := range []int64{1, 7, 50, 100, 101} {
		store.SliceWaves(slice)
		count, err := store.CountWaves(t.Context())
		if err != nil || count.Jobs != 100 {
			t.Fatalf("slices of %d: %+v, %v", slice, count, err)
		}
		found, err := store.Waves(t.Context(), forecast.Filter{Queue: "q", Tenants: true})
		if err != nil {
			t.Fatal(err)
		}
		acme, all := 0, 0
		for _, w := range found.Queues[0].Ahead {
			acme, all = acme+w.Tenants["acme"], all+w.Jobs
		}
		if acme != 50 || all != 100 {
			t.Errorf("slices of %d: %d jobs, %d of acme", slice, all, acme)
		}
	}
}
