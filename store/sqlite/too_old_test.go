package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/sluice-queue/sluice/store/storetest"
)

func TestHoldersNameAProgramThatIsTooOldForTheSchema(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "sluice.db"))
	storetest.TooOld(t, store, "sluice_", "1", func(statement string) error {
		_, err := store.DB().ExecContext(t.Context(), statement)
		return err
	})
}
