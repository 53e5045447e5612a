package demo

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
)

//go:embed sql/sqlite_ledger.sql
var sqliteLedgerSQL string

//go:embed sql/sqlite_check.sql
var sqliteCheckSQL string

//go:embed sql/sqlite_reasons.sql
var sqliteReasonsSQL string

//go:embed sql/postgres_ledger.sql
var postgresLedgerSQL string

//go:embed sql/postgres_check.sql
var postgresCheckSQL string

//go:embed sql/postgres_reasons.sql
var postgresReasonsSQL string

// Ledger is the book of payments. A payment makes two entries: one takes the money, one gives it.
type Ledger interface {
	// Prepare creates the table.
	Prepare(ctx context.Context) error
	// Post posts a payment and completes its job, in one transaction.
	Post(ctx context.Context, claim *sluice.Claim, p Payment) error
	// Check counts the outcome of a queue's payments by SQL.
	Check(ctx context.Context, queue string) (Check, error)
}

// Check is the result of checking the books.
type Check struct {
	// Payments were enqueued; Posted are in the ledger; Dead are dead letters, each with its
	// reason.
	Payments int `json:"payments"`
	Posted   int `json:"posted"`
	Dead     int `json:"dead"`
	// Cents is the sum of all payments. CentsPosted and CentsDead are the sums of posted and of
	// dead ones.
	Cents       int64 `json:"cents"`
	CentsPosted int64 `json:"cents_posted"`
	CentsDead   int64 `json:"cents_dead"`

	// The faults; all must be 0. Doubled payments do not have exactly 2 entries. Misposted ones
	// have another amount in the ledger than in the job, or no job. DeadButPosted are both.
	// DeadForNoReason lack an error. Unfinished are not posted and not dead. Unposted are
	// completed, but not in the ledger. Balance is the sum of all entries.
	Doubled         int   `json:"doubled"`
	Misposted       int   `json:"misposted"`
	DeadButPosted   int   `json:"dead_but_posted"`
	DeadForNoReason int   `json:"dead_for_no_reason"`
	Unfinished      int   `json:"unfinished"`
	Unposted        int   `json:"unposted"`
	Balance         int64 `json:"balance"`

	// FailedAttempts, Recoveries and Releases count the events on the way.
	FailedAttempts int `json:"failed_attempts"`
	Recoveries     int `json:"recoveries"`
	Releases       int `json:"releases"`

	// Reasons counts the dead letters by error.
	Reasons []Reason `json:"reasons"`
}

// Reason is the error of dead payments.
type Reason struct {
	Error string `json:"error"`
	Count int    `json:"count"`
}

// Holds reports whether every payment was posted exactly once or is dead with a reason, and the
// money adds up.
func (c Check) Holds() bool {
	return c.Doubled == 0 && c.Misposted == 0 && c.DeadButPosted == 0 && c.DeadForNoReason == 0 && c.Unfinished == 0 && c.Unposted == 0 && c.Balance == 0 &&
		c.Posted+c.Dead == c.Payments && c.CentsPosted+c.CentsDead == c.Cents
}

// targets returns the scan targets for a row of the check statements.
func (c *Check) targets() []any {
	return []any{
		&c.Payments, &c.Posted, &c.Dead, &c.Cents, &c.CentsPosted, &c.CentsDead, &c.Doubled, &c.Misposted, &c.DeadButPosted,
		&c.DeadForNoReason, &c.Unfinished, &c.Unposted, &c.Balance, &c.FailedAttempts, &c.Recoveries, &c.Releases,
	}
}

// NewLedger returns the ledger in the same database as a store.
func NewLedger(store sluice.Store) (Ledger, error) {
	if s, ok := sluice.StoreAs[*sqlite.Store](store); ok {
		return sqliteLedger{s}, nil
	}
	if s, ok := sluice.StoreAs[*postgres.Store](store); ok {
		return postgresLedger{s}, nil
	}
	return nil, fmt.Errorf("there is no ledger beside a %T", store)
}

type sqliteLedger struct{ store *sqlite.Store }

func (l sqliteLedger) Prepare(ctx context.Context) error {
	return l.store.Transact(ctx, func(tx sqlite.Tx) error {
		_, err := tx.ExecContext(ctx, sqliteLedgerSQL)
		return err
	})
}

func (l sqliteLedger) Post(ctx context.Context, claim *sluice.Claim, p Payment) error {
	return l.store.Transact(ctx, func(tx sqlite.Tx) error {
		const entry = "insert into demo_ledger (queue, payment_id, account, cents) values (?1, ?2, ?3, ?4)"
		if _, err := tx.ExecContext(ctx, entry, claim.Queue, p.ID, p.Payer, -p.Cents); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, entry, claim.Queue, p.ID, p.Payee, p.Cents); err != nil {
			return err
		}
		return sqlite.CompleteTx(ctx, tx, claim, nil)
	})
}

func (l sqliteLedger) Check(ctx context.Context, queue string) (Check, error) {
	var c Check
	if err := l.store.DB().QueryRowContext(ctx, sqliteCheckSQL, queue).Scan(c.targets()...); err != nil {
		return c, err
	}
	rows, err := l.store.DB().QueryContext(ctx, sqliteReasonsSQL, queue)
	if err != nil {
		return c, err
	}
	defer func() { _ = rows.Close() }()
	c.Reasons, err = readReasons(rows)
	return c, err
}

func readReasons(rows *sql.Rows) ([]Reason, error) {
	out := []Reason{} // so that JSON has an empty list instead of null
	for rows.Next() {
		var r Reason
		if err := rows.Scan(&r.Error, &r.Count); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

type postgresLedger struct{ store *postgres.Store }

func (l postgresLedger) Prepare(ctx context.Context) error {
	_, err := l.store.Pool().Exec(ctx, postgresLedgerSQL)
	return err
}

func (l postgresLedger) Post(ctx context.Context, claim *sluice.Claim, p Payment) error {
	return pgx.BeginFunc(ctx, l.store.Pool(), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "insert into sluice_demo.ledger (queue, payment_id, account, cents) values ($1, $2, $3, $4), ($1, $2, $5, $6)",
			claim.Queue, p.ID, p.Payer, -p.Cents, p.Payee, p.Cents)
		if err != nil {
			return err
		}
		return postgres.CompleteTx(ctx, tx, claim, nil)
	})
}

func (l postgresLedger) Check(ctx context.Context, queue string) (Check, error) {
	var c Check
	if err := l.store.Pool().QueryRow(ctx, postgresCheckSQL, queue).Scan(c.targets()...); err != nil {
		return c, err
	}
	rows, err := l.store.Pool().Query(ctx, postgresReasonsSQL, queue)
	if err != nil {
		return c, err
	}
	c.Reasons, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Reason])
	return c, err
}
