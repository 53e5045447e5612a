package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/migration"
)

//go:embed schema/*.sql
var schemaFiles embed.FS

// migrationLock is the advisory lock under which one process at a time migrates.
const migrationLock = 0x536c75696365 // "Sluice"

const createMigrationTable = `
create schema if not exists sluice;
create table if not exists sluice.migration (
    version    integer     primary key,           -- the number of the step
    name       text        not null,              -- the name of the step
    checksum   text        not null,              -- the checksum of its text
    works_from integer     not null,              -- the first step whose programs work with the schema
    applied_at timestamptz not null default now() -- when a process ran the step
)`

// Migrate brings the schema and the functions for other languages up to date, and returns the steps that it ran.
// Each step is a transaction. Several processes may migrate at once; one of them does the work. Options.Migrate
// does the same without the functions, which Go programs do not need.
func Migrate(ctx context.Context, dsn string) ([]sluice.Migration, error) {
	conn, err := connectTo(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	done, err := migrate(ctx, conn)
	if err != nil {
		return done, err
	}
	functions, err := migrateFunctions(ctx, conn)
	if functions != nil {
		done = append(done, *functions)
	}
	return done, err
}

// PendingMigrations returns the steps that [Migrate] would run, without running them.
func PendingMigrations(ctx context.Context, dsn string) ([]sluice.Migration, error) {
	conn, err := connectTo(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("look at the schema: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	steps, err := pending(ctx, conn)
	if err != nil {
		return nil, err
	}
	functions, err := missingFunctions(ctx, conn)
	if functions != nil {
		steps = append(steps, *functions)
	}
	return steps, err
}

func connectTo(ctx context.Context, dsn string) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, Options{}.withDefaults().CallTimeout)
	defer cancel()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.DefaultQueryExecMode = planEachTime
	config.RuntimeParams["client_encoding"] = "UTF8"
	config.RuntimeParams["standard_conforming_strings"] = "on"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sluice.ErrUnavailable, err)
	}
	return conn, nil
}

func migrate(ctx context.Context, conn *pgx.Conn) ([]sluice.Migration, error) {
	var done []sluice.Migration
	for {
		step, err := migrateOne(ctx, conn)
		if err != nil {
			return done, fmt.Errorf("migrate: %w", err)
		}
		if step == nil {
			break
		}
		done = append(done, *step)
	}
	return done, nil
}

// hasTable looks for a table in the catalog's own tables. to_regclass would answer from the session's cache of the
// catalog, which may be older than the wait for an advisory lock.
const hasTable = `select exists (
    select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'sluice' and c.relname = $1::text)`

// underMigrationLock runs do in a transaction, while no other process migrates. Each of its statements sees all
// commits until then, even if the role or the DSN sets another isolation level.
func underMigrationLock(ctx context.Context, conn *pgx.Conn, do func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		// A step may take longer than a call, and waits for another process that migrates.
		if _, err := tx.Exec(ctx, "set local statement_timeout = 0; set local lock_timeout = 0"); err != nil {
			return err
		}
		if err := exec(ctx, tx, "select pg_advisory_xact_lock($1)", int64(migrationLock)); err != nil {
			return err
		}
		return do(tx)
	})
}

// migrateOne runs the next step, if one is left, in a transaction that holds the lock.
func migrateOne(ctx context.Context, conn *pgx.Conn) (next *sluice.Migration, err error) {
	err = underMigrationLock(ctx, conn, func(tx pgx.Tx) error {
		steps, err := pending(ctx, tx)
		if err != nil || len(steps) == 0 {
			return err
		}
		step := steps[0]
		if err := checkEncoding(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, createMigrationTable); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, step.SQL); err != nil {
			return fmt.Errorf("step %d (%s): %w", step.Version, step.Name, err)
		}
		next = &step
		return exec(ctx, tx, "insert into sluice.migration (version, name, checksum, works_from) values ($1, $2, $3, $4)",
			step.Version, step.Name, step.Checksum, step.WorksFrom)
	})
	if err != nil {
		return nil, err
	}
	return next, nil
}

// checkEncoding refuses a database that cannot hold every text, or that would not know where a character begins.
func checkEncoding(ctx context.Context, db rowsQuerier) error {
	encoding, err := list(ctx, db, pgx.RowTo[string], "show server_encoding")
	if err != nil || encoding[0] == "UTF8" {
		return err
	}
	return &sluice.InvalidError{Field: "database", Rule: "has the encoding " + encoding[0] + ", and must have UTF8: create another one with `encoding 'UTF8' template template0`"}
}

// rowsQuerier is a pool, a connection or a transaction.
type rowsQuerier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func pending(ctx context.Context, db rowsQuerier) ([]sluice.Migration, error) {
	steps, err := schemaSteps()
	if err != nil {
		return nil, err
	}
	rows, err := query(ctx, db, hasTable, "migration")
	if err != nil {
		return nil, err
	}
	exists, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
	if err != nil || !exists {
		return slices.Clone(steps), err
	}
	rows, err = query(ctx, db, "select version, checksum, works_from from sluice.migration order by version")
	if err != nil {
		return nil, err
	}
	applied, err := pgx.CollectRows(rows, pgx.RowToStructByPos[migration.Applied])
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

// tooNewSQL finds the schema step that needs the newest program, if this program is too old for it.
const tooNewSQL = "select version, checksum, works_from from sluice.migration where works_from > $1::integer order by works_from desc limit 1"

// mayWork returns a [sluice.ErrNewerSchema] if another program has migrated the database to a schema that this
// program must not use. The check reads one row per second.
func (s *Store) mayWork(ctx context.Context, db rowsQuerier) error {
	return s.schema.Check(func(knows int) ([]migration.Applied, error) { return tooNew(ctx, db, knows) })
}

func tooNew(ctx context.Context, db rowsQuerier, knows int) ([]migration.Applied, error) {
	return list(ctx, db, pgx.RowToStructByPos[migration.Applied], tooNewSQL, knows)
}

// checkSchema returns an error for a database that this program cannot use. Before that, it migrates the database
// if Options.Migrate is set.
func (s *Store) checkSchema(ctx context.Context) error {
	var steps []sluice.Migration
	err := s.call(ctx, "check schema", func(ctx context.Context, _ bool) (err error) {
		steps, err = pending(ctx, s.pool)
		return err
	})
	if err != nil || len(steps) == 0 {
		return err
	}
	if !s.options.Migrate {
		return migration.Missing(steps)
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", sluice.ErrUnavailable, err)
	}
	defer conn.Release()
	_, err = migrate(ctx, conn.Conn())
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "42501" {
		return fmt.Errorf("this role may not change the schema; run `sluice migrate` as its owner: %w", err)
	}
	return err
}

// CheckSchema reports whether this program can use the schema as it is now. The error is a [sluice.ErrNotMigrated]
// if steps are missing, and a [sluice.ErrNewerSchema] if the program is too old for a newer program's step.
// CheckSchema reads a few rows.
func (s *Store) CheckSchema(ctx context.Context) error {
	return s.call(ctx, "check schema", func(ctx context.Context, _ bool) error {
		steps, err := pending(ctx, s.pool)
		if err != nil || len(steps) == 0 {
			return err
		}
		return migration.Missing(steps)
	})
}
