package access_test

import (
	"path/filepath"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// TestATokenWorksWhileTheStoreCannotBeWritten looks a token up while another transaction holds the write lock of the file. So do a
// full disk and a standby keep the store from noting the use of the token.
func TestATokenWorksWhileTheStoreCannotBeWritten(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	_, secret, err := access.Create(t.Context(), store, access.Token{Name: "ops", Role: access.RoleViewer}, sluice.Act{By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	locked, err := store.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	gate := access.NewGate(store)
	if caller, err := gate.Caller(t.Context(), secret); err != nil || caller.Name != "token ops" {
		t.Errorf("while the file is locked, the gate says %+v, %v", caller, err)
	}
	if err := locked.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, err := access.NewGate(store).Caller(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if token, err := access.Given(store).AccessToken(t.Context(), "ops"); err != nil || token.UsedAt.IsZero() {
		t.Errorf("later the use is noted: %+v, %v", token, err)
	}
}
