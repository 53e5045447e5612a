package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
)

// InTx lets a client enqueue inside the caller's own transaction:
//
//	receipt, err := client.Within(store.InTx(tx)).Enqueue(ctx, job)
//
// The job exists if and only if the transaction commits.
func (s *Store) InTx(tx pgx.Tx) sluice.Enqueuer { return txEnqueuer{s, tx} }

// InSQLTx is InTx for a transaction of database/sql, which must come from pgx's driver (package
// pgx/v5/stdlib).
func (s *Store) InSQLTx(tx *sql.Tx) sluice.Enqueuer { return txEnqueuer{s, sqlTx{tx}} }

type txEnqueuer struct {
	store *Store
	tx    rowsQuerier
}

// Enqueue stores jobs through the transaction. It does not try again: after an error the
// transaction is the caller's to roll back.
func (e txEnqueuer) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, e.store.options.CallTimeout)
	defer cancel()
	receipts, err := enqueue(ctx, e.tx, jobs, false)
	if err != nil {
		return nil, typed(err)
	}
	return receipts, e.store.signalInTx(ctx, e.tx, queuesOf(jobs))
}

// CompleteTx completes a claimed job inside the caller's own transaction, so that the effect of the
// job and its completion commit together or not at all. The result is stored as JSON; nil: none.
// If the claim is lost it is an ErrLost, and the caller must roll back. Within a worker's handler,
// commit and return nil.
func CompleteTx(ctx context.Context, tx pgx.Tx, claim *sluice.Claim, result any) error {
	return complete(ctx, tx, claim, result)
}

// CompleteSQLTx is CompleteTx for a transaction of database/sql, which must come from pgx's driver
// (package pgx/v5/stdlib).
func CompleteSQLTx(ctx context.Context, tx *sql.Tx, claim *sluice.Claim, result any) error {
	return complete(ctx, sqlTx{tx}, claim, result)
}

func complete(ctx context.Context, tx rowsQuerier, claim *sluice.Claim, result any) error {
	in := sluice.Settlement{ID: claim.ID, Token: claim.Token, Holder: claim.Holder, Event: sluice.EventComplete}
	if result != nil {
		text, err := json.Marshal(result)
		if err != nil {
			return fmt.Errorf("complete job %s: result: %w", claim.ID, err)
		}
		in.Result = text
	}
	rows, err := end(ctx, tx, endingOf(in.Event, []sluice.Settlement{in}, []int{0}))
	if err != nil {
		return fmt.Errorf("complete job %s: %w", claim.ID, typed(err))
	}
	if !movedIDs(rows)[claim.ID] {
		return fmt.Errorf("complete job %s: %w", claim.ID, sluice.ErrLost)
	}
	claim.MarkSettledInTx()
	return nil
}

// sqlTx makes a transaction of database/sql run our statements. pgx's driver takes the arguments
// as they are.
type sqlTx struct{ tx *sql.Tx }

func (t sqlTx) Query(ctx context.Context, text string, args ...any) (pgx.Rows, error) {
	rows, err := t.tx.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return &sqlRows{Rows: rows}, nil
}

// sqlRows gives rows of database/sql the shape of pgx's. Our statements only step and scan.
type sqlRows struct{ *sql.Rows }

func (r *sqlRows) Close()                                       { _ = r.Rows.Close() }
func (r *sqlRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (r *sqlRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (r *sqlRows) Values() ([]any, error)                       { return nil, nil }
func (r *sqlRows) RawValues() [][]byte                          { return nil }
func (r *sqlRows) Conn() *pgx.Conn                              { return nil }
func (r *sqlRows) TypeMap() *pgtype.Map                         { return nil }
