package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/internal/verbtest"
	"github.com/sluice-queue/sluice/store/postgres"
)

// TestStoreThatIsOpenRefusesASchemaThatNeedsANewerProgram makes another program migrate the database while a store is
// open, and undo the migration.
func TestStoreThatIsOpenRefusesASchemaThatNeedsANewerProgram(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	store, other := openStore(t, url), openStore(t, url)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	receipt, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil || len(claimed.Jobs) != 1 {
		t.Fatal(claimed, err)
	}
	change := func(statement string) {
		t.Helper()
		if _, err := other.Pool().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
		time.Sleep(sluice.SettingsInterval)
	}
	change("insert into sluice.migration values (99, 'of the future', 'x', 99)")
	for verb, err := range verbtest.Call(t.Context(), store, nil) {
		if !errors.Is(err, sluice.ErrNewerSchema) && !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%s gives %v", verb, err)
		}
	}
	inTx(t, store, func(tx pgx.Tx) {
		if _, err := client.Within(store.InTx(tx)).Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`)}); !errors.Is(err, sluice.ErrNewerSchema) {
			t.Errorf("an enqueue in a transaction gives %v", err)
		}
		if err := postgres.CompleteTx(t.Context(), tx, claimed.Jobs[0], nil); !errors.Is(err, sluice.ErrNewerSchema) {
			t.Errorf("a completion in a transaction gives %v", err)
		}
	})
	check := api.StoreAnswers(store)
	if _, err := check.Examine(t.Context()); !errors.Is(err, sluice.ErrNewerSchema) {
		t.Errorf("readiness says %v", err)
	}

	change("delete from sluice.migration where version = 99")
	inTx(t, store, func(tx pgx.Tx) {
		if err := postgres.CompleteTx(t.Context(), tx, claimed.Jobs[0], nil); err != nil {
			t.Error(err)
		}
	})
	if job, err := client.Job(t.Context(), receipt.ID); err != nil || job.State != sluice.StateCompleted {
		t.Errorf("the job is %s: %v", job.State, err)
	}
}

func inTx(t *testing.T, store *postgres.Store, do func(tx pgx.Tx)) {
	t.Helper()
	if err := pgx.BeginFunc(t.Context(), store.Pool(), func(tx pgx.Tx) error { do(tx); return nil }); err != nil {
		t.Fatal(err)
	}
}
