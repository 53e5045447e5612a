package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/migration"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

const createMigrationTable = `
create table if not exists sluice_migration (
    version    integer primary key, -- the number of the step
    name       text    not null,    -- the name of the step
    checksum   text    not null,    -- the checksum of its text
    works_from integer not null,    -- the first step whose programs work with the schema
    applied_at integer not null     -- when a process ran the step, in µs since 1970 in UTC
)`

// Migrate brings the schema of a file up to date, and returns the steps that it ran. If the file
// does not exist, Migrate creates it. Each step is a transaction. Several processes may migrate at
// once; one of them does the work.
func Migrate(ctx context.Context, path string) ([]sluice.Migration, error) {
	db, err := openDB(path, openUnguarded)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	defer func() { _ = db.Close() }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", typed(err))
	}
	defer func() { _ = conn.Close() }()
	return migrate(ctx, conn)
}

// PendingMigrations returns the steps that [Migrate] would run, without running them.
func PendingMigrations(ctx context.Context, path string) ([]sluice.Migration, error) {
	if _, err := os.Stat(path); os.IsNotExist(err) {
		steps, err := schemaSteps()
		return slices.Clone(steps), err
	}
	db, err := openDB(path, openUnguarded)
	if err != nil {
		return nil, fmt.Errorf("look at the schema: %w", err)
	}
	defer func() { _ = db.Close() }()
	return pending(readTx{ctx, db, nil})
}

func migrate(ctx context.Context, conn *sql.Conn) ([]sluice.Migration, error) {
	var done []sluice.Migration
	for {
		step, err := migrateOne(ctx, conn)
		if err != nil {
			return done, fmt.Errorf("migrate: %w", typed(err))
		}
		if step == nil {
			return done, nil
		}
		done = append(done, *step)
	}
}

// migrateOne runs the next step, if one is left, in a transaction that holds the file's lock.
func migrateOne(ctx context.Context, conn *sql.Conn) (step *sluice.Migration, err error) {
	err = locked(ctx, conn, func(tx foreignTx) (err error) {
		step, err = runNext(tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return step, nil
}

// locked calls do in a transaction that holds the file's lock.
func locked(ctx context.Context, conn *sql.Conn, do func(tx foreignTx) error) error {
	if err := lockFile(ctx, conn); err != nil {
		return err
	}
	err := do(foreignTx{ctx, conn})
	ending := "commit"
	if err != nil {
		ending = "rollback"
	}
	if _, endErr := conn.ExecContext(context.WithoutCancel(ctx), ending); err == nil {
		err = endErr
	}
	return err
}

// lockFile takes the file's lock, and waits for other processes that migrate.
func lockFile(ctx context.Context, conn *sql.Conn) error {
	for {
		_, err := conn.ExecContext(ctx, "begin immediate")
		if err == nil || !busy(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another process holds the file's lock: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func runNext(tx foreignTx) (*sluice.Migration, error) {
	steps, err := pending(tx)
	if err != nil || len(steps) == 0 {
		return nil, err
	}
	step := steps[0]
	if _, err := tx.exec(createMigrationTable); err != nil {
		return nil, err
	}
	err = withoutFollowers(tx, func() error {
		_, err := tx.exec(step.SQL)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("step %d (%s): %w", step.Version, step.Name, err)
	}
	_, err = tx.exec("insert into sluice_migration (version, name, checksum, works_from, applied_at) values (?, ?, ?, ?, ?)",
		step.Version, step.Name, step.Checksum, step.WorksFrom, now())
	return &step, err
}

func pending(tx runner) ([]sluice.Migration, error) {
	steps, err := schemaSteps()
	if err != nil {
		return nil, err
	}
	exists, err := list(tx, scanOne[int], "select count(*) from sqlite_master where type = 'table' and name = 'sluice_migration'")
	if err != nil || exists[0] == 0 {
		return slices.Clone(steps), err
	}
	applied, err := list(tx, scanApplied, "select version, checksum, works_from from sluice_migration order by version")
	if err != nil {
		return nil, err
	}
	return migration.Pending(steps, applied)
}

// schemaSteps reads the steps of the schema once: the files are part of the program.
var schemaSteps = sync.OnceValues(func() ([]sluice.Migration, error) { return migration.Steps(schemaFiles, "schema") })

// knownSteps is the number of the newest step that this program knows.
func knownSteps() int {
	steps, err := schemaSteps()
	if err != nil {
		panic(err) // cannot happen: the files are part of the program, and were read when the store was opened
	}
	return len(steps)
}

// mayWork returns a [sluice.ErrNewerSchema] if another program has migrated the file to a schema
// that this program must not use. The check reads one row per second.
func (s *Store) mayWork(tx runner) error {
	return s.schema.Check(func(knows int) ([]migration.Applied, error) { return tooNew(tx, knows) })
}

// fits is mayWork for a caller's own transaction, and reads the row each time.
func fits(tx runner) error {
	newer, err := tooNew(tx, knownSteps())
	if err != nil {
		return err
	}
	return migration.Refusal(knownSteps(), newer)
}

// tooNew returns the schema step that needs the newest program, if a program that knows that many
// steps is too old for it.
func tooNew(tx runner, knows int) ([]migration.Applied, error) {
	return list(tx, scanApplied, "select version, checksum, works_from from sluice_migration where works_from > ? order by works_from desc limit 1", knows)
}

func scanApplied(rows *sql.Rows) (migration.Applied, error) {
	var a migration.Applied
	err := rows.Scan(&a.Version, &a.Checksum, &a.WorksFrom)
	return a, err
}

// checkSchema returns an error for a file that this program cannot use. Before that, it migrates
// the file if Options.Migrate is set.
func (s *Store) checkSchema(ctx context.Context) error {
	var steps []sluice.Migration
	err := s.read(ctx, "check schema", func(tx runner) (err error) {
		steps, err = pending(tx)
		return err
	})
	if err != nil || len(steps) == 0 {
		return err
	}
	if !s.options.Migrate {
		return migration.Missing(steps)
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return typed(err)
	}
	defer func() { _ = conn.Close() }()
	_, err = migrate(ctx, conn)
	return err
}

// CheckSchema reports whether this program can use the schema as it is now. The error is a
// [sluice.ErrNotMigrated] if steps are missing, and a [sluice.ErrNewerSchema] if the program is too
// old for a newer program's step. CheckSchema reads a few rows.
func (s *Store) CheckSchema(ctx context.Context) error {
	return s.read(ctx, "check schema", func(tx runner) error {
		steps, err := pending(tx)
		if err != nil || len(steps) == 0 {
			return err
		}
		return migration.Missing(steps)
	})
}
