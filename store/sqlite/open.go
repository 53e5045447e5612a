package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/migration"
)

// readers is how many connections read beside the one that writes.
const readers = 4

// Open opens a store's file with this package's driver, and checks its schema. The driver is
// modernc.org/sqlite, in pure Go, so programs cross-compile. If the file does not exist, Open
// creates it, readable and writable by its owner only. No other SQLite library of the program may
// have the file open: see [ErrTwoLibraries] and [New].
//
// No statement on the store's connections can change the schema of Sluice, including statements
// through [Store.DB], [Store.Transact] and the caller's own transactions. SQLite answers "not
// authorized" to statements that:
//
//   - create, alter or drop tables, indexes, triggers and views named sluice_…
//   - attach other files, as VACUUM INTO does
//   - set a pragma that changes the file
//
// Other tables belong to the caller. Options.Migrate brings the schema up to date beforehand,
// through other connections.
func Open(ctx context.Context, path string, options Options) (*Store, error) {
	db, err := openDB(path, openGuarded)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	store, err := openWith(ctx, db, path, options)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	store.ownsDB = true
	return store, nil
}

// openWith makes a store of a guarded database. If asked, it first migrates the file through an
// unguarded one.
func openWith(ctx context.Context, db *sql.DB, path string, options Options) (*Store, error) {
	migrate := options.Migrate
	options.Migrate = false
	store, err := New(ctx, db, options)
	if !migrate || !errors.Is(err, sluice.ErrNotMigrated) {
		return store, err
	}
	if _, err := Migrate(ctx, path); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return New(ctx, db, options)
}

// openUnguarded opens a database whose connections may change the schema.
func openUnguarded(dsn string) (*sql.DB, error) { return sql.Open("sqlite", dsn) }

func openDB(path string, open func(dsn string) (*sql.DB, error)) (*sql.DB, error) {
	if path == "" || strings.Contains(path, ":memory:") {
		return nil, &sluice.InvalidError{Field: "path", Rule: "a SQLite store needs a file; for a store in memory use package store/memory"}
	}
	path = filepath.Clean(path)
	if err := refuseStrangers(path, lockForAll()); err != nil {
		return nil, err
	}
	if err := refuseOrphan(path); err != nil {
		return nil, err
	}
	if err := migration.NewFile(path); err != nil {
		return nil, fmt.Errorf("the file cannot be opened: %w: %w", sluice.ErrUnavailable, err)
	}
	dsn := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()}
	pragmas := []string{"busy_timeout(5000)"}
	if !hasTemporaryFolder() {
		pragmas = append(pragmas, "temp_store(memory)")
	}
	dsn.RawQuery = url.Values{"_txlock": {"immediate"}, "_pragma": pragmas}.Encode()
	db, err := open(dsn.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(readers + 1)
	db.SetMaxIdleConns(readers + 1)
	return db, nil
}
