package postgres

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/migration"
	"github.com/sluice-queue/sluice/internal/sqltx"
)

//go:embed sql/complete.sql
var completeSQL string

//go:embed sql/job_in.sql
var jobInSQL string

// InTx lets a client enqueue inside the caller's own transaction.
//
//	receipt, err := client.Within(store.InTx(tx)).Enqueue(ctx, job)
//
// The job exists if and only if the transaction commits.
func (s *Store) InTx(tx pgx.Tx) sluice.Enqueuer { return s.inTx(tx, tx) }

// InSQLTx is [Store.InTx] for a transaction of database/sql, which must come from pgx's driver (package
// pgx/v5/stdlib). For a transaction of lib/pq, which passes arguments in another form, calls return a
// [sluice.ErrForeignTx] and write nothing.
func (s *Store) InSQLTx(tx *sql.Tx) sluice.Enqueuer { return s.inTx(tx, sqlTx{tx}) }

func (s *Store) inTx(given any, tx rowsQuerier) sluice.Enqueuer {
	if sluice.CheckGiven("transaction", given) != nil {
		return sluice.GivenEnqueuer(nil)
	}
	return txEnqueuer{s, tx}
}

// foreign holds the drivers whose transactions are refused, with the reason. A driver that wraps pgx's is accepted.
var foreign = map[string]string{
	"github.com/lib/pq":              "lib/pq hands over arguments in another way",
	"modernc.org/sqlite":             "it is of SQLite",
	"github.com/mattn/go-sqlite3":    "it is of SQLite",
	"github.com/go-sql-driver/mysql": "it is of MySQL",
}

// checkDriver refuses a transaction of database/sql from a foreign driver.
func checkDriver(tx rowsQuerier) error {
	of, ok := tx.(sqlTx)
	if !ok {
		return nil
	}
	from := sqltx.Find(of.tx)
	if why := foreign[from.Package]; why != "" {
		return fmt.Errorf("%w: it is of %s: %s; open the database with the driver pgx (github.com/jackc/pgx/v5/stdlib)", sluice.ErrForeignTx, from, why)
	}
	return nil
}

// inCallersTx is typed for an error in a caller's transaction. The store repeats its own transactions after a conflict with
// another, but only the caller can repeat this one. A deadlock is a [sluice.ErrUnavailable], so that a worker whose handler
// returns it counts no attempt.
func inCallersTx(err error) error {
	switch {
	case isCode(err, "40P01"):
		return fmt.Errorf("your transaction and another waited for each other; roll back, and begin it again: %w: %w", sluice.ErrUnavailable, err)
	case isCode(err, "40001"):
		return fmt.Errorf("another transaction has changed the same rows since yours began; roll back, and begin it again, or begin it with the isolation level read committed: %w", err)
	}
	return typed(err)
}

type txEnqueuer struct {
	store *Store
	tx    rowsQuerier
}

// Enqueue stores jobs through the transaction, without a second try: after an error, the caller must roll back.
func (e txEnqueuer) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, e.store.options.CallTimeout)
	defer cancel()
	if err := checkDriver(e.tx); err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	if err := e.store.mayWork(ctx, e.tx); err != nil {
		return nil, fmt.Errorf("enqueue: %w", inCallersTx(err))
	}
	tx := preparingTx{e.tx, e.store}
	stay, err := e.store.room.Enter(ctx, jobs, e.store.roomSourceIn(tx))
	if err != nil {
		return make([]sluice.Receipt, len(jobs)), inCallersTx(err)
	}
	out, err := enqueue(ctx, tx, jobs, enqueuing{})
	stay.End(jobs, out.receipts)
	if err != nil {
		return nil, inCallersTx(err)
	}
	if err := e.store.signalInTx(ctx, e.tx, queuesOf(jobs)); err != nil {
		return nil, err
	}
	e.store.countEnqueued(jobs, out.receipts)
	e.store.unblockLater(jobs, out.behind)
	return out.receipts, out.refusal()
}

// do runs a verb through the transaction, without a second try.
func (e txEnqueuer) do(ctx context.Context, verb string, run func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, e.store.options.CallTimeout)
	defer cancel()
	if err := checkDriver(e.tx); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if err := e.store.mayWork(ctx, e.tx); err != nil {
		return fmt.Errorf("%s: %w", verb, inCallersTx(err))
	}
	if err := run(ctx); err != nil {
		return inCallersTx(err)
	}
	return nil
}

// Queues lists queues through the transaction.
func (e txEnqueuer) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	ctx, cancel := context.WithTimeout(ctx, e.store.options.CallTimeout)
	defer cancel()
	if err := checkDriver(e.tx); err != nil {
		return nil, fmt.Errorf("read queues: %w", err)
	}
	if err := e.store.mayWork(ctx, e.tx); err != nil {
		return nil, fmt.Errorf("read queues: %w", inCallersTx(err))
	}
	queues, err := listQueues(ctx, e.tx, filter)
	if err != nil {
		return nil, inCallersTx(err)
	}
	return queues, nil
}

// Admit reports, through the transaction, which queues a job may not name.
func (e txEnqueuer) Admit(ctx context.Context, queues []string, _ sluice.Act) ([]error, error) {
	ctx, cancel := context.WithTimeout(ctx, e.store.options.CallTimeout)
	defer cancel()
	if err := checkDriver(e.tx); err != nil {
		return nil, fmt.Errorf("admit queues: %w", err)
	}
	if err := e.store.mayWork(ctx, e.tx); err != nil {
		return nil, fmt.Errorf("admit queues: %w", inCallersTx(err))
	}
	refused, _, err := admit(ctx, e.tx, queues)
	if err != nil {
		return nil, inCallersTx(err)
	}
	return refused, nil
}

// Now reads the store's clock through the transaction.
func (e txEnqueuer) Now(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, e.store.options.CallTimeout)
	defer cancel()
	if err := checkDriver(e.tx); err != nil {
		return time.Time{}, fmt.Errorf("read clock: %w", err)
	}
	if err := e.store.mayWork(ctx, e.tx); err != nil {
		return time.Time{}, fmt.Errorf("read clock: %w", inCallersTx(err))
	}
	now, err := readNow(ctx, e.tx)
	if err != nil {
		return time.Time{}, inCallersTx(err)
	}
	return now, nil
}

// HasJob reports, through the transaction, whether a job is stored in a queue.
func (e txEnqueuer) HasJob(ctx context.Context, id sluice.ID, queue string) (has bool, err error) {
	err = e.do(ctx, "look up job", func(ctx context.Context) error {
		found, err := list(ctx, e.tx, pgx.RowTo[bool], jobInSQL, [16]byte(id), queue)
		has = first(found)
		return err
	})
	return has, err
}

// CompleteTx completes a claimed job inside the caller's own transaction: the effect of the job and its completion
// commit together, or not at all. The result is stored as JSON; nil: none. In a worker's handler, commit and then
// return nil. If the claim is lost, CompleteTx returns a [sluice.ErrLost], and the caller must roll back.
func CompleteTx(ctx context.Context, tx pgx.Tx, claim *sluice.Claim, result any) error {
	return complete(ctx, tx, tx, claim, result)
}

// CompleteSQLTx is [CompleteTx] for a transaction of database/sql, which must come from pgx's driver (package
// pgx/v5/stdlib).
func CompleteSQLTx(ctx context.Context, tx *sql.Tx, claim *sluice.Claim, result any) error {
	return complete(ctx, tx, sqlTx{tx}, claim, result)
}

func complete(ctx context.Context, given any, tx rowsQuerier, claim *sluice.Claim, result any) error {
	if err := cmp.Or(sluice.CheckGiven("transaction", given), sluice.CheckGiven("claim", claim)); err != nil {
		return fmt.Errorf("complete: %w", err)
	}
	var text []byte
	if result != nil {
		var err error
		if text, err = json.Marshal(result); err != nil {
			return fmt.Errorf("complete job %s: result: %w", claim.ID, err)
		}
	}
	if err := errors.Join(sluice.CheckResult("result", text), checkDriver(tx)); err != nil {
		return fmt.Errorf("complete job %s: %w", claim.ID, err)
	}
	rows, err := list(ctx, tx, scanCompleted, completeSQL, [16]byte(claim.ID), [16]byte(claim.Token),
		states(sluice.MoveOf(sluice.EventComplete).From), text, knownSteps())
	if err == nil && len(rows) == 0 {
		err = whyNotCompleted(ctx, tx)
	}
	var locked []sluice.ID
	if err == nil && rows[0].keyed {
		_, locked, err = freeKeys(ctx, tx, []pgtype.UUID{{Bytes: claim.ID, Valid: true}}, []pgtype.UUID{rows[0].blockedBy})
	}
	if err == nil && (rows[0].awaited || len(locked) > 0) {
		err = unblockIn(ctx, tx, []sluice.ID{claim.ID})
	}
	if err != nil {
		return fmt.Errorf("complete job %s: %w", claim.ID, inCallersTx(err))
	}
	claim.MarkSettledInTx()
	return nil
}

// whyNotCompleted returns a [sluice.ErrNewerSchema] if this program is too old for the schema, else a
// [sluice.ErrLost].
func whyNotCompleted(ctx context.Context, tx rowsQuerier) error {
	newer, err := tooNew(ctx, tx, knownSteps())
	if err != nil {
		return err
	}
	if err := migration.Refusal(knownSteps(), newer); err != nil {
		return err
	}
	return sluice.ErrLost
}

// completed is a job that was completed in its holder's transaction.
type completed struct {
	keyed     bool
	blockedBy pgtype.UUID
	awaited   bool
}

func scanCompleted(row pgx.CollectableRow) (completed, error) {
	var c completed
	err := row.Scan(&c.keyed, &c.blockedBy, &c.awaited)
	return c, err
}

// sqlTx runs the store's statements in a transaction of database/sql. pgx's driver takes the arguments as they are.
type sqlTx struct{ tx *sql.Tx }

func (t sqlTx) Query(ctx context.Context, text string, args ...any) (pgx.Rows, error) {
	rows, err := t.tx.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return &sqlRows{Rows: rows}, nil
}

// sqlRows gives rows of database/sql the interface of pgx's. The store's statements only step, scan and read
// values.
type sqlRows struct{ *sql.Rows }

func (r *sqlRows) Close()                                       { _ = r.Rows.Close() }
func (r *sqlRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (r *sqlRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (r *sqlRows) RawValues() [][]byte                          { return nil }
func (r *sqlRows) Conn() *pgx.Conn                              { return nil }
func (r *sqlRows) TypeMap() *pgtype.Map                         { return nil }

// Values returns the columns of a row; database/sql makes every integer an int64.
func (r *sqlRows) Values() ([]any, error) {
	columns, err := r.Columns()
	if err != nil {
		return nil, err
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	return values, r.Scan(into...)
}
