// Package books is the database of the application: the tables of its domains beside Sluice's, in one SQLite file or
// one PostgreSQL database. So a payment and the job that is to execute it are stored in one transaction: there is never
// one without the other.
package books

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/monitor"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// Tx is what the domains need of a transaction. Their SQL is the same for both databases: arguments are $1, $2, …,
// and instants are microseconds since 1970.
type Tx interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// Books is the open database.
type Books struct {
	// Store keeps the jobs, Client puts them in and looks at them.
	Store  sluice.Store
	Client *sluice.Client

	db       *sql.DB
	jobs     string
	follow   func(ctx context.Context, f sluice.Follower) error
	transact func(ctx context.Context, do func(tx Tx, jobs sluice.Enqueuer) error) error
	close    func() error
	// watch observes what enqueues in a transaction.
	watch func(jobs sluice.Enqueuer) sluice.Enqueuer
}

// Open opens the database at a PostgreSQL URL, or in the SQLite file of that name, which is made if it is not there.
// Sluice's tables are brought up to date.
func Open(ctx context.Context, address string) (*Books, error) {
	open := openSQLite
	if strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://") {
		open = openPostgres
	}
	b, err := open(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("open the books: %w", err)
	}
	b.Client = sluice.NewClient(b.Store, sluice.ClientOptions{})
	return b, nil
}

func openSQLite(ctx context.Context, path string) (*Books, error) {
	store, err := sqlite.Open(ctx, path, sqlite.Options{Migrate: true})
	if err != nil {
		return nil, err
	}
	return &Books{
		Store: store, db: store.DB(), jobs: "sluice_jobs", follow: store.Follow, close: store.Close,
		// The store's own writer commits the work of many callers together, so that they do not wait for each other.
		transact: func(ctx context.Context, do func(tx Tx, jobs sluice.Enqueuer) error) error {
			return store.Transact(ctx, func(tx sqlite.Tx) error { return do(tx, store.InTx(tx)) })
		},
	}, nil
}

func openPostgres(ctx context.Context, url string) (*Books, error) {
	store, err := postgres.Open(ctx, url, postgres.Options{Migrate: true})
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDBFromPool(store.Pool())
	return &Books{
		Store: store, db: db, jobs: "sluice.jobs", follow: store.Follow, close: store.Close,
		transact: func(ctx context.Context, do func(tx Tx, jobs sluice.Enqueuer) error) error {
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

// Monitor lets the store be watched from now on. It must be called before the books are used.
func (b *Books) Monitor(options monitor.Options) (*monitor.Monitor, error) {
	m, err := monitor.New(b.Store, options)
	if err != nil {
		return nil, err
	}
	b.watch = m.Enqueuer
	b.Store, b.Client = m.Store, sluice.NewClient(m.Store, sluice.ClientOptions{Logger: options.Logger})
	return m, nil
}

// Close closes the database.
func (b *Books) Close() error { return b.close() }

// Prepare makes tables that are not there yet, and has their rows follow their jobs.
func (b *Books) Prepare(ctx context.Context, tables string, f sluice.Follower) error {
	if _, err := b.db.ExecContext(ctx, tables); err != nil {
		return err
	}
	return b.follow(ctx, f)
}

// Astray tells of each item of a domain that does not say what became of its job. There should be none, ever. The statement
// is the domain's; {jobs} in it stands for Sluice's view of all jobs, whose name differs between databases.
func (b *Books) Astray(ctx context.Context, statement string) ([]string, error) {
	rows, err := b.db.QueryContext(ctx, strings.ReplaceAll(statement, "{jobs}", b.jobs))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, errors.Join(rows.Err(), rows.Close())
}

// Transact does its work in one transaction. What the client enqueues meanwhile is stored if and only if the
// transaction commits. Do must use nothing but tx and that client.
func (b *Books) Transact(ctx context.Context, do func(tx Tx, client *sluice.Client) error) error {
	return b.transact(ctx, func(tx Tx, jobs sluice.Enqueuer) error {
		if b.watch != nil {
			jobs = b.watch(jobs)
		}
		return do(tx, b.Client.Within(jobs))
	})
}

// DB is for looking things up.
func (b *Books) DB() *sql.DB { return b.db }

// Exec runs a statement and reports whether it changed a row.
func Exec(ctx context.Context, tx Tx, text string, args ...any) (changed bool, err error) {
	result, err := tx.ExecContext(ctx, text, args...)
	if err != nil {
		return false, err
	}
	rows, err := result.RowsAffected()
	return rows > 0, err
}
