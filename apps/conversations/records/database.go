// Package records is the application's file: conversations, sanitized messages, learnings and uploads, in tables beside
// Sluice's. So what a stage found and the job of the next stage are stored in one transaction. No raw text comes here: the
// packages that call it have scrubbed what they store.
package records

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/sqlite"
)

//go:embed sql/schema.sql
var schemaSQL string

// Database is the open file.
type Database struct {
	// Path is that of the file. Store is Sluice's, Client puts jobs in and looks at them, Checker knows the schemas of payloads.
	Path    string
	Store   *sqlite.Store
	Client  *sluice.Client
	Checker sluice.PayloadChecker
	// watch observes what enqueues in a transaction.
	watch func(jobs sluice.Enqueuer) sluice.Enqueuer
}

// Open opens the file. Its tables must be there: see Prepare.
func Open(ctx context.Context, path string, checker sluice.PayloadChecker) (*Database, error) {
	return open(ctx, path, sluice.ClientOptions{PayloadChecker: checker}, sqlite.Options{}, true)
}

// OpenBriefly opens the file for a process that only adds to it, and gives up each call after a while. It waits for nobody
// who writes. Its client logs nothing: a conversation's second message meets the job of the first as a rule.
func OpenBriefly(ctx context.Context, path string, checker sluice.PayloadChecker, callTimeout time.Duration) (*Database, error) {
	quiet := sluice.ClientOptions{PayloadChecker: checker, Logger: slog.New(slog.DiscardHandler)}
	return open(ctx, path, quiet, sqlite.Options{CallTimeout: callTimeout}, false)
}

// Prepare makes the file and its tables where they are missing, and opens it. It is the only one that changes tables;
// workers and hooks are given a file that is prepared.
func Prepare(ctx context.Context, path string, checker sluice.PayloadChecker) (*Database, error) {
	d, err := open(ctx, path, sluice.ClientOptions{PayloadChecker: checker}, sqlite.Options{Migrate: true}, true)
	if err != nil {
		return nil, err
	}
	if err := d.Store.Transact(ctx, func(tx sqlite.Tx) error {
		_, err := tx.ExecContext(ctx, schemaSQL)
		return err
	}); err != nil {
		return nil, errors.Join(fmt.Errorf("make the tables of %s: %w", path, err), d.Close())
	}
	return d, nil
}

func open(ctx context.Context, path string, client sluice.ClientOptions, o sqlite.Options, removes bool) (*Database, error) {
	store, err := sqlite.Open(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	d := &Database{Path: path, Store: store, Client: sluice.NewClient(store, client), Checker: client.PayloadChecker}
	if !removes {
		return d, nil
	}
	// What is overwritten or deleted is zeroed: the second stage removes what the rules have left, from the file too.
	if err := store.Transact(ctx, func(tx sqlite.Tx) error {
		_, err := tx.ExecContext(ctx, "pragma secure_delete = on")
		return err
	}); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), store.Close())
	}
	return d, nil
}

// Watched is the same database for work whose enqueues are observed.
func (d *Database) Watched(watch func(jobs sluice.Enqueuer) sluice.Enqueuer) *Database {
	watched := *d
	watched.watch = watch
	return &watched
}

// Close closes the file.
func (d *Database) Close() error { return d.Store.Close() }

// Forget brings the journal into the file and empties it, so that what was removed from messages is gone from there too.
// While others read or write it does what it can; it is to be called again.
func (d *Database) Forget(ctx context.Context) error {
	_, err := d.Store.DB().ExecContext(ctx, "pragma wal_checkpoint(truncate)")
	return err
}

// Tx is one transaction on the file: for rows, and for jobs.
type Tx struct {
	sqlite.Tx
	// Client enqueues within the transaction.
	Client *sluice.Client
	// Now is the instant of the transaction's rows.
	Now time.Time
}

// Transact runs do in one transaction: all of it is stored, or nothing.
func (d *Database) Transact(ctx context.Context, do func(tx Tx) error) error {
	return d.Store.Transact(ctx, func(tx sqlite.Tx) error {
		jobs := d.Store.InTx(tx)
		if d.watch != nil {
			jobs = d.watch(jobs)
		}
		return do(Tx{tx, d.Client.Within(jobs), time.Now()})
	})
}

// Complete completes a worker's job within the transaction.
func (tx Tx) Complete(ctx context.Context, claim *sluice.Claim, result any) error {
	return sqlite.CompleteTx(ctx, tx.Tx, claim, result)
}

// micros is the instant as the tables have it.
func (tx Tx) micros() int64 { return tx.Now.UnixMicro() }

// querier looks things up: the database, or a transaction.
type querier interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// list reads every row that a statement finds.
func list[T any](ctx context.Context, from querier, scan func(rows *sql.Rows, row *T) error, text string, args ...any) ([]T, error) {
	rows, err := from.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []T
	for rows.Next() {
		var row T
		if err := scan(rows, &row); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// one reads a row that may not be there.
func one[T any](ctx context.Context, from querier, scan func(rows *sql.Rows, row *T) error, text string, args ...any) (row T, found bool, err error) {
	all, err := list(ctx, from, scan, text, args...)
	if err != nil || len(all) == 0 {
		return row, false, err
	}
	return all[0], true, nil
}

// changed runs a statement that returns a row for what it changed, and reports whether it changed anything.
func changed(ctx context.Context, from querier, text string, args ...any) (bool, error) {
	_, found, err := one(ctx, from, func(rows *sql.Rows, row *any) error { return rows.Scan(row) }, text, args...)
	return found, err
}
