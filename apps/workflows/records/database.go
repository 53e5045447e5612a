// Package records is the application's database: workspaces, workflow definitions and their versions, and executions,
// in tables beside Sluice's. So an execution and the job that is to run it are stored in one transaction.
package records

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/monitor"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
)

//go:embed sql/schema.sql
var schemaSQL string

// tx is what the statements need of a transaction.
type tx interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// Database is the open database.
type Database struct {
	// Store is Sluice's, Client puts jobs in and looks at them.
	Store  sluice.Store
	Client *sluice.Client

	address  string
	db       *sql.DB
	jobs     jobsView
	follow   func(ctx context.Context, f sluice.Follower) error
	transact func(ctx context.Context, do func(tx tx, jobs sluice.Enqueuer) error) error
	close    func() error
	// watch observes what enqueues in a transaction.
	watch func(jobs sluice.Enqueuer) sluice.Enqueuer
}

// Open opens the PostgreSQL database of a URL, or the SQLite file of a name, which is made if it is not there. The
// tables are made, Sluice's are brought up to date, and the records of executions follow their jobs.
func Open(ctx context.Context, address string) (*Database, error) {
	open := openSQLite
	if strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://") {
		open = openPostgres
	}
	d, err := open(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	d.address = address
	d.Client = sluice.NewClient(d.Store, sluice.ClientOptions{})
	if _, err := d.db.ExecContext(ctx, schemaSQL); err != nil {
		_ = d.Close()
		return nil, fmt.Errorf("make the tables: %w", err)
	}
	if err := d.follow(ctx, follower); err != nil {
		_ = d.Close()
		return nil, fmt.Errorf("let executions follow their jobs: %w", err)
	}
	return d, nil
}

// Monitor lets the store be watched from now on. It must be called before the database is used.
func (d *Database) Monitor(options monitor.Options) (*monitor.Monitor, error) {
	m, err := monitor.New(d.Store, options)
	if err != nil {
		return nil, err
	}
	d.watch = m.Enqueuer
	d.Store, d.Client = m.Store, sluice.NewClient(m.Store, sluice.ClientOptions{Logger: options.Logger})
	return m, nil
}

func openSQLite(ctx context.Context, path string) (*Database, error) {
	store, err := sqlite.Open(ctx, path, sqlite.Options{Migrate: true})
	if err != nil {
		return nil, err
	}
	return &Database{
		Store: store, db: store.DB(), jobs: sqliteJobs, follow: store.Follow, close: store.Close,
		// The store's own writer commits the work of many callers together, so that they do not wait for each other.
		transact: func(ctx context.Context, do func(tx tx, jobs sluice.Enqueuer) error) error {
			return store.Transact(ctx, func(tx sqlite.Tx) error { return do(tx, store.InTx(tx)) })
		},
	}, nil
}

func openPostgres(ctx context.Context, url string) (*Database, error) {
	store, err := postgres.Open(ctx, url, postgres.Options{Migrate: true})
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDBFromPool(store.Pool())
	return &Database{
		Store: store, db: db, jobs: postgresJobs, follow: store.Follow, close: store.Close,
		transact: func(ctx context.Context, do func(tx tx, jobs sluice.Enqueuer) error) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }() // after a commit it does nothing
			if err := do(tx, store.InSQLTx(tx)); err != nil {
				return err
			}
			return tx.Commit()
		},
	}, nil
}

// Address is what it was opened with.
func (d *Database) Address() string { return d.address }

// Close closes the database.
func (d *Database) Close() error { return d.close() }

// write runs statements in one transaction.
func (d *Database) write(ctx context.Context, statements ...statement) error {
	for _, s := range statements {
		if err := checkTexts(s.args); err != nil {
			return err
		}
	}
	return d.transact(ctx, func(tx tx, _ sluice.Enqueuer) error {
		for _, s := range statements {
			if _, err := tx.ExecContext(ctx, s.text, s.args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// statement is a text of the folder sql with its arguments.
type statement struct {
	text string
	args []any
}

func do(text string, args ...any) statement { return statement{text, args} }

// querier looks things up: the database, or a transaction.
type querier interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// checkTexts refuses texts that PostgreSQL cannot hold, on SQLite too, so that both answer alike.
func checkTexts(args []any) error {
	for _, arg := range args {
		if text, is := arg.(string); is && (!utf8.ValidString(text) || strings.Contains(text, "\x00")) {
			return &sluice.InvalidError{Field: "text", Rule: fmt.Sprintf("%.80q must be UTF-8 without the character 0", text)}
		}
	}
	return nil
}

// list reads every row that a statement finds.
func list[T any](ctx context.Context, from querier, scan func(rows *sql.Rows, row *T) error, text string, args ...any) ([]T, error) {
	if err := checkTexts(args); err != nil {
		return nil, err
	}
	rows, err := from.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	all := []T{} // JSON has an empty list, not null
	for rows.Next() {
		var row T
		if err := scan(rows, &row); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}
