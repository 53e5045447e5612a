package cli

import (
	"context"
	"os"
	"strings"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// address is where a store is: a PostgreSQL URL, or the path of a SQLite file.
type address struct {
	postgres string
	sqlite   string
}

func parseAddress(text string) (address, error) {
	switch {
	case text == "":
		return address{}, codedError{usagef("no store is named"), exitUsage, "add --db sqlite:PATH or --db postgres://…, or set SLUICE_DB"}
	case strings.HasPrefix(text, "postgres://"), strings.HasPrefix(text, "postgresql://"):
		return address{postgres: text}, nil
	case strings.HasPrefix(text, "sqlite:"):
		path := strings.TrimPrefix(text, "sqlite:")
		if strings.HasPrefix(path, "//") { // sqlite:///absolute/path and sqlite://relative/path
			path = strings.TrimPrefix(path, "//")
		}
		if path == "" {
			return address{}, usagef("--db %q names no file; write sqlite:PATH", text)
		}
		return address{sqlite: path}, nil
	}
	return address{}, usagef("--db %q begins with neither sqlite: nor postgres://", redactURL(text))
}

// open opens the store that --db names.
func (a *app) open(ctx context.Context) (sluice.Store, error) {
	at, err := parseAddress(a.db)
	if err != nil {
		return nil, err
	}
	logger, err := a.logger()
	if err != nil {
		return nil, err
	}
	if at.postgres != "" {
		return postgres.Open(ctx, at.postgres, postgres.Options{Migrate: a.migrate, Logger: logger})
	}
	if _, err := os.Stat(at.sqlite); os.IsNotExist(err) && !a.migrate {
		return nil, codedError{
			error: usagef("there is no file %s", at.sqlite), code: exitUnreachable,
			todo: "make it with «sluice migrate --db " + a.db + "», or add --migrate",
		}
	}
	return sqlite.Open(ctx, at.sqlite, sqlite.Options{Migrate: a.migrate, Logger: logger})
}

// pendingMigrations and runMigrations look at the schema without opening the store, which refuses
// one that is not up to date.
func (a *app) pendingMigrations(ctx context.Context) ([]sluice.Migration, error) {
	at, err := parseAddress(a.db)
	if err != nil {
		return nil, err
	}
	if at.postgres != "" {
		return postgres.PendingMigrations(ctx, at.postgres)
	}
	return sqlite.PendingMigrations(ctx, at.sqlite)
}

func (a *app) runMigrations(ctx context.Context) ([]sluice.Migration, error) {
	at, err := parseAddress(a.db)
	if err != nil {
		return nil, err
	}
	if at.postgres != "" {
		return postgres.Migrate(ctx, at.postgres)
	}
	return sqlite.Migrate(ctx, at.sqlite)
}
