package postgres_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
)

func TestMigrateMakesTheFunctionsOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	begun := time.Now()
	steps, err := postgres.Migrate(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(begun), len(steps), steps[len(steps)-1].Name)
	again, err := postgres.Migrate(t.Context(), url)
	if err != nil || len(again) > 0 {
		t.Fatalf("migrating again ran %d steps, error %v", len(again), err)
	}
}
