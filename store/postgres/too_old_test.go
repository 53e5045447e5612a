package postgres_test

import (
	"testing"

	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/storetest"
)

func TestHoldersNameAProgramThatIsTooOldForTheSchema(t *testing.T) {
	t.Parallel()
	store := openStore(t, pgtest.NewDatabase(t))
	storetest.TooOld(t, store, "sluice.", "interval '1 microsecond'", func(statement string) error {
		_, err := store.Pool().Exec(t.Context(), statement)
		return err
	})
}
