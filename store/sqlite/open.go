package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite": pure Go, so that it cross-compiles

	"github.com/sluice-queue/sluice"
)

// readers is how many connections look things up beside the one that writes.
const readers = 4

// Open opens the file of a store, which is made if it is not there, and checks its schema.
func Open(ctx context.Context, path string, options Options) (*Store, error) {
	db, err := openDB(path)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	store, err := New(ctx, db, options)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	store.ownsDB = true
	return store, nil
}

func openDB(path string) (*sql.DB, error) {
	if path == "" || strings.Contains(path, ":memory:") {
		return nil, &sluice.InvalidError{Field: "path", Rule: "a SQLite store needs a file; for a store in memory use package store/memory"}
	}
	path = filepath.Clean(path)
	dsn := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()}
	dsn.RawQuery = url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(5000)"}}.Encode()
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(readers + 1)
	db.SetMaxIdleConns(readers + 1)
	return db, nil
}
