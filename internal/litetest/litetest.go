// Package litetest creates SQLite files with the schema of the store, for tests.
//
// Begin with [MakeFile]: it copies a file that was migrated once, because a copy takes a hundredth
// of the time of a migration. Open the file with sqlite.Open then.
//
// Read next: package sqlite, and package internal/pgtest for PostgreSQL.
package litetest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sluice-queue/sluice/store/sqlite"
)

// migrated is a file with the whole schema, made once: migrating takes 100 times as long as
// copying.
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

// MakeFile creates a file with the schema of the SQLite store, unless it exists.
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
