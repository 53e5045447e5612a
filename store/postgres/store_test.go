package postgres_test

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/internal/timetest"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/storetest"
)

// TestMain runs few random sequences, because each verb is a round trip to the server. It runs more tests at once,
// because they mostly wait for the server.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.checks": "30", "test.parallel": "3"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	pgtest.Main(m)
}

// open makes two stores on a new database.
func open(t *testing.T) storetest.Bench {
	t.Helper()
	return openAt(t, migrated.Copy(t)) // copying a template costs less than migrating
}

// openAt makes two stores on an empty database.
func openAt(t *testing.T, url string) storetest.Bench {
	t.Helper()
	return benchOf(t, openStore(t, url), openStore(t, url))
}

// benchOf makes a bench of two stores on one database. Time passes by moving everything stored into the past, so the
// store uses only the server's clock.
func benchOf(t *testing.T, store, other *postgres.Store) storetest.Bench {
	t.Helper()
	refresh := func() {
		store.ForgetLowWater()
		other.ForgetLowWater()
	}
	advance := func(d time.Duration) {
		defer refresh()
		if _, err := store.Pool().Exec(context.Background(), timetest.AdvancePostgres(d)); err != nil {
			t.Fatalf("advance: %v", err)
		}
	}
	setColumn := func(column string, value any) {
		if _, err := store.Pool().Exec(context.Background(), "update sluice.queue set "+column+" = $1 where name = 'payments'", value); err != nil {
			t.Fatalf("set %s: %v", column, err)
		}
	}
	return storetest.Bench{Store: store, Other: other, Now: time.Now, Advance: advance, Refresh: refresh, SetColumn: setColumn, Slow: true}
}

func openStore(t *testing.T, url string) *postgres.Store {
	t.Helper()
	// On a busy machine, a call may wait long for a connection.
	store, err := postgres.Open(t.Context(), url+"&pool_max_conns=10", postgres.Options{Migrate: true, CallTimeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func TestPostgresObeysTheRules(t *testing.T) {
	t.Parallel()
	used := &databases{owner: t, make: migrated.Copy}
	storetest.Run(t, used.open)
}

func TestPostgresAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	storetest.Model(t, open)
}

func TestPostgresAgreesWithTheModelOfLimits(t *testing.T) {
	t.Parallel()
	storetest.ModelOfLimits(t, open)
}

func TestPostgresKeepsLimitsAndGetsNothingStuck(t *testing.T) {
	t.Parallel()
	storetest.Turns(t, open)
}
