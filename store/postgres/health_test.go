package postgres_test

import (
	"testing"

	"github.com/sluice-queue/sluice"
)

func TestHealthOfAFreshDatabaseIsWell(t *testing.T) {
	t.Parallel()
	store := openStore(t, newWithFunctions(t))
	health, err := sluice.HealthOf(t.Context(), store, sluice.HealthOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range health.Findings {
		t.Logf("%+v", f)
	}
	for _, f := range health.Figures {
		t.Logf("%+v", f)
	}
}
