// Package litetest makes files of SQLite for tests.
package litetest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sluice-queue/sluice/store/sqlite"
)

// migrated is a file with the whole schema, made once: to make it anew takes a hundred times as long as to copy it.
var migrated = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "sluice-schema-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "sluice.db")
	if _, err := sqlite.Migrate(context.Background(), path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// MakeFile makes a file with the schema of the store on SQLite, where there is none.
func MakeFile(t testing.TB, path string) {
	t.Helper()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		return
	}
	schema, err := migrated()
	if err == nil {
		err = os.WriteFile(path, schema, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
