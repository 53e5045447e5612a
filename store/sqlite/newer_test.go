package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/internal/verbtest"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// TestStoreThatIsOpenRefusesASchemaThatNeedsANewerProgram makes another program migrate the file while a store is open,
// and undo the migration.
func TestStoreThatIsOpenRefusesASchemaThatNeedsANewerProgram(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.db")
	store, other := openStore(t, path), openStore(t, path)
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
		if _, err := other.DB().ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
		time.Sleep(sluice.SettingsInterval)
	}
	change("insert into sluice_migration values (99, 'of the future', 'x', 99, 0)")
	for verb, err := range verbtest.Call(t.Context(), store, nil) {
		if !errors.Is(err, sluice.ErrNewerSchema) && !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%s gives %v", verb, err)
		}
	}
	inTx(t, store, func(tx *sql.Tx) {
		if _, err := client.Within(store.InTx(tx)).Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`)}); !errors.Is(err, sluice.ErrNewerSchema) {
			t.Errorf("an enqueue in a transaction gives %v", err)
		}
		if err := sqlite.CompleteTx(t.Context(), tx, claimed.Jobs[0], nil); !errors.Is(err, sluice.ErrNewerSchema) {
			t.Errorf("a completion in a transaction gives %v", err)
		}
	})
	if err := store.Transact(t.Context(), func(sqlite.Tx) error { return nil }); !errors.Is(err, sluice.ErrNewerSchema) {
		t.Errorf("a transaction gives %v", err)
	}
	check := api.StoreAnswers(store)
	if _, err := check.Examine(t.Context()); !errors.Is(err, sluice.ErrNewerSchema) {
		t.Errorf("readiness says %v", err)
	}

	change("delete from sluice_migration where version = 99")
	inTx(t, store, func(tx *sql.Tx) {
		if err := sqlite.CompleteTx(t.Context(), tx, claimed.Jobs[0], nil); err != nil {
			t.Error(err)
		}
	})
	if job, err := client.Job(t.Context(), receipt.ID); err != nil || job.State != sluice.StateCompleted {
		t.Errorf("the job is %s: %v", job.State, err)
	}
}

func inTx(t *testing.T, store *sqlite.Store, do func(tx *sql.Tx)) {
	t.Helper()
	tx, err := store.DB().BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	do(tx)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}
