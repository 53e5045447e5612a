package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/remote"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// address is the place of a store: a PostgreSQL URL, the path of a SQLite file, or the URL of a server.
type address struct {
	postgres string
	sqlite   string
	server   string
}

// namingAStore says how to name a store with a flag.
func namingAStore(flag string) string {
	if flag == dbFlag {
		return "add --db sqlite:PATH, --db postgres://USER@HOST/DATABASE or --db https://HOST, or set SLUICE_DB"
	}
	return fmt.Sprintf("add %[1]s sqlite:PATH or %[1]s postgres://USER@HOST/DATABASE", flag)
}

// dbFlag is the usual flag that names a store.
const dbFlag = "--db"

func parseAddress(text string) (address, error) { return parseAddressOf(dbFlag, text) }

// parseAddressOf is parseAddress for the value of another flag.
func parseAddressOf(flag, text string) (address, error) {
	switch {
	case text == "":
		return address{}, codedError{usagef("no store is named"), exitUsage, namingAStore(flag)}
	case strings.HasPrefix(text, "postgres://"), strings.HasPrefix(text, "postgresql://"):
		return address{postgres: text}, nil
	case remote.IsAddress(text):
		return address{server: text}, nil
	case strings.HasPrefix(text, "sqlite:"):
		// sqlite:///absolute/path and sqlite://relative/path work too.
		path := strings.TrimPrefix(strings.TrimPrefix(text, "sqlite:"), "//")
		if path == "" {
			return address{}, codedError{usagef("%s %q names no file", flag, text), exitUsage, namingAStore(flag)}
		}
		return address{sqlite: path}, nil
	}
	return address{}, codedError{usagef("%s %q begins with neither sqlite:, postgres:// nor https://", flag, redactURL(text)), exitUsage, namingAStore(flag)}
}

// defaultTimeout is the default of --timeout. After slowOpen a note says that the store does not answer yet. Tests wait
// longer.
var (
	defaultTimeout = 30 * time.Second
	slowOpen       = 1500 * time.Millisecond
)

// open opens the store of --db.
func (a *app) open(ctx context.Context) (sluice.Store, error) { return a.openAt(ctx, a.db, a.migrate) }

// openAt opens a store, migrating it first if asked.
func (a *app) openAt(ctx context.Context, named string, migrate bool) (sluice.Store, error) {
	at, err := parseAddress(named)
	if err != nil {
		return nil, err
	}
	if at.sqlite == "" {
		slow := time.AfterFunc(slowOpen, func() { a.note("%s does not answer yet; trying again for some seconds", redactURL(named)) })
		defer slow.Stop()
	}
	return a.openQuietly(ctx, at, named, migrate)
}

// openQuietly opens the store at an address, written as named, without notes while it tries.
func (a *app) openQuietly(ctx context.Context, at address, named string, migrate bool) (sluice.Store, error) {
	if at.postgres != "" {
		store, err := postgres.Open(ctx, at.postgres, postgres.Options{Migrate: migrate, Logger: a.logger()})
		if err != nil {
			return nil, err
		}
		return a.observeStore(store, at), nil
	}
	if at.server != "" {
		return a.openServer(ctx, at)
	}
	if _, err := os.Stat(at.sqlite); os.IsNotExist(err) && !migrate {
		return nil, codedError{
			error: fmt.Errorf("there is no file %s", at.sqlite), code: exitUnreachable,
			todo: "make it with `sluice migrate --db " + named + "`, or add --migrate",
		}
	}
	if err := checkFolder(at.sqlite); err != nil {
		return nil, err
	}
	store, err := sqlite.Open(ctx, at.sqlite, sqlite.Options{Migrate: migrate, Logger: a.logger()})
	if err != nil {
		return nil, fileError(at.sqlite, err)
	}
	return a.observeStore(store, at), nil
}

// checkFolder says why no file can be created at a path; SQLite only says that it cannot.
func checkFolder(path string) error {
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return codedError{fmt.Errorf("there is no folder %s", folder), exitUnreachable, "make it with `mkdir -p " + folder + "`, or name another file with --db"}
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return codedError{fmt.Errorf("%s is a folder", path), exitUnreachable, "name a file in it with --db, such as sqlite:" + filepath.Join(path, "jobs.db")}
	}
	return nil
}

// fileError says what to do about an unusable file.
func fileError(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "not a SQLite database"):
		return codedError{err, exitUnreachable, "name another file with --db; " + path + " is something else"}
	case diskFull(err):
		return err
	case errors.Is(err, sluice.ErrUnavailable):
		return codedError{err, exitUnreachable, "look whether you may write " + path + " and its folder, and whether the disk is full"}
	}
	return err
}

// pendingMigrations and runMigrations work without opening the store, which refuses an outdated schema.
func (a *app) pendingMigrations(ctx context.Context) ([]sluice.Migration, error) {
	at, err := parseAddress(a.db)
	if err != nil {
		return nil, err
	}
	if at.server != "" {
		return nil, needsDatabase("migrate")
	}
	if at.postgres != "" {
		return postgres.PendingMigrations(ctx, at.postgres)
	}
	steps, err := sqlite.PendingMigrations(ctx, at.sqlite)
	return steps, fileError(at.sqlite, err)
}

func (a *app) runMigrations(ctx context.Context) ([]sluice.Migration, error) {
	at, err := parseAddress(a.db)
	if err != nil {
		return nil, err
	}
	if at.server != "" {
		return nil, needsDatabase("migrate")
	}
	if at.postgres != "" {
		slow := time.AfterFunc(slowOpen, func() {
			a.note("still migrating: a step may wait for transactions, vacuums and other programs that migrate; `select pid, query from pg_stat_activity` shows them")
		})
		defer slow.Stop()
		return postgres.Migrate(ctx, at.postgres)
	}
	if err := checkFolder(at.sqlite); err != nil {
		return nil, err
	}
	steps, err := sqlite.Migrate(ctx, at.sqlite)
	return steps, fileError(at.sqlite, err)
}
