package postgres_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
)

// TestErrorsOfFunctionsAreNoOutage raises codes of server faults in a handler's own statement. They must count as
// failures, or a job that always meets them would be released for ever.
func TestErrorsOfFunctionsAreNoOutage(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	for _, code := range []string{"57P01", "57P03", "53300", "08001", "08006"} {
		_, err := store.Pool().Exec(t.Context(), fmt.Sprintf("do $do$ begin raise exception 'the kitchen is closed' using errcode = '%s'; end $do$", code))
		if err == nil || sluice.Outage(store, fmt.Errorf("cook: %w", err)) {
			t.Errorf("%s: %v counts as an outage of the store", code, err)
		}
	}
	err := pgx.BeginFunc(t.Context(), store.Pool(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "select pg_terminate_backend(pg_backend_pid())")
		return err
	})
	if err == nil || !sluice.Outage(store, fmt.Errorf("cook: %w", err)) {
		t.Errorf("%v is no outage of the store", err)
	}
}
