package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/migration"
)

// Tx is what our statements need of a transaction: *sql.Tx has it, and so does what Transact gives.
type Tx interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// runner runs our statements: the writer with prepared ones, a caller's transaction as they are.
type runner interface {
	exec(text string, args ...any) (sql.Result, error)
	query(text string, args ...any) (*sql.Rows, error)
	// signal is sent when the transaction has been committed, if that can be known.
	signal(sluice.Signal)
	// moved is counted when the transaction has been committed, if that can be known.
	moved(queue, tenant string, event sluice.Event)
}

// move is one that a transaction made, to be counted.
type move struct {
	queue, tenant string
	event         sluice.Event
}

// groupTx is a write's share of the transaction that the writer has open.
type groupTx struct {
	writer  *writer
	signals []sluice.Signal
	moves   []move
	rows    []*sql.Rows // that a caller asked for; left open they would keep the transaction open
	broken  error       // the transaction is gone, and all that was written in it
}

func (t *groupTx) exec(text string, args ...any) (sql.Result, error) {
	stmt, err := t.writer.prepare(text)
	if err != nil {
		return nil, err
	}
	return stmt.Exec(args...)
}

func (t *groupTx) query(text string, args ...any) (*sql.Rows, error) {
	if explains(text) {
		return t.writer.conn.QueryContext(context.Background(), text, args...)
	}
	stmt, err := t.writer.prepare(text)
	if err != nil {
		return nil, err
	}
	return stmt.Query(args...)
}

func (t *groupTx) signal(s sluice.Signal) { t.signals = append(t.signals, s) }

func (t *groupTx) moved(queue, tenant string, event sluice.Event) {
	t.moves = append(t.moves, move{queue, tenant, event})
}

// ExecContext runs a statement of the caller's. Once begun it runs to its end: SQLite would undo the
// writes of all others together with one that is interrupted.
func (t *groupTx) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	stmt, err := t.writer.prepareFor(ctx, text)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(context.WithoutCancel(ctx), args...)
}

// QueryContext runs a query of the caller's, whose rows are closed when its work returns.
func (t *groupTx) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	stmt, err := t.writer.prepareFor(ctx, text)
	if err != nil {
		return nil, err
	}
	rows, err := stmt.QueryContext(context.WithoutCancel(ctx), args...)
	if err == nil {
		t.rows = append(t.rows, rows)
	}
	return rows, err
}

func (t *groupTx) closeRows() {
	for _, rows := range t.rows {
		_ = rows.Close()
	}
	t.rows = nil
}

// foreignTx runs our statements in a transaction of the caller's own.
type foreignTx struct {
	ctx context.Context
	tx  Tx
}

func (t foreignTx) exec(text string, args ...any) (sql.Result, error) {
	return t.tx.ExecContext(t.ctx, text, args...)
}

func (t foreignTx) query(text string, args ...any) (*sql.Rows, error) {
	return t.tx.QueryContext(t.ctx, text, args...)
}

func (foreignTx) signal(sluice.Signal) {} // the writer sees the commit in the file's version

func (foreignTx) moved(string, string, sluice.Event) {}

// runnerOf takes the writer's own transaction where it is that, which keeps statements prepared.
func runnerOf(ctx context.Context, tx Tx) runner {
	if group, ok := tx.(*groupTx); ok {
		return group
	}
	return foreignTx{ctx, tx}
}

// readTx runs our statements for a look-up.
type readTx struct {
	ctx  context.Context
	db   *sql.DB
	kept *statements // nil: none are kept prepared
}

func (t readTx) exec(text string, args ...any) (sql.Result, error) {
	return t.db.ExecContext(t.ctx, text, args...)
}

func (t readTx) query(text string, args ...any) (*sql.Rows, error) {
	stmt, err := t.kept.prepare(t.ctx, t.db, text)
	if err != nil {
		return nil, err
	}
	if stmt == nil {
		return t.db.QueryContext(t.ctx, text, args...)
	}
	return stmt.QueryContext(t.ctx, args...)
}

func (readTx) signal(sluice.Signal) {}

func (readTx) moved(string, string, sluice.Event) {}

// statements keeps those of look-ups prepared: SQLite reads the text of most of them longer than it runs them.
type statements struct {
	mu     sync.Mutex
	byText map[string]*sql.Stmt
	closed bool
}

// maxStatements is how many are kept. There are fewer; texts that differ by what is in them would fill the memory.
const maxStatements = 256

// explains reports whether a statement tells how another would be run. Kept prepared, it tells how it would have been run then,
// though a table that it names is gone.
func explains(text string) bool { return strings.HasPrefix(text, "explain ") }

// prepare gives a statement, which is prepared on each connection that runs it; nil, if it is not to be kept.
func (s *statements) prepare(ctx context.Context, db *sql.DB, text string) (*sql.Stmt, error) {
	if s == nil || explains(text) {
		return nil, nil
	}
	s.mu.Lock()
	stmt, full := s.byText[text], s.closed || len(s.byText) >= maxStatements
	s.mu.Unlock()
	if stmt != nil || full {
		return stmt, nil
	}
	stmt, err := db.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.byText[text]; other != nil || s.closed { // somebody was faster
		return other, stmt.Close()
	}
	if s.byText == nil {
		s.byText = make(map[string]*sql.Stmt)
	}
	s.byText[text] = stmt
	return stmt, nil
}

// close gives the statements back: the database may be the caller's.
func (s *statements) close() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, stmt := range s.byText {
		err = errors.Join(err, stmt.Close())
	}
	clear(s.byText)
	return err
}

// list collects the rows of a statement.
func list[T any](r runner, scan func(*sql.Rows) (T, error), text string, args ...any) ([]T, error) {
	rows, err := r.query(text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var out []T
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, errors.Join(rows.Err(), rows.Close())
}

// scanOne reads rows of one column.
func scanOne[T any](rows *sql.Rows) (T, error) {
	var value T
	err := rows.Scan(&value)
	return value, err
}

// write runs one verb in the writer's next transaction, under the store's deadline, and tries it
// again after a transient fault. The verb is told whether an earlier try may have been committed.
func (s *Store) write(ctx context.Context, verb string, do func(tx runner, again bool) error) error {
	return s.call(ctx, verb, func(ctx context.Context, again bool) error {
		return s.writer.submit(ctx, func(tx *groupTx) error { return do(tx, again) })
	})
}

// read runs one look-up.
func (s *Store) read(ctx context.Context, verb string, do func(tx runner) error) error {
	return s.call(ctx, verb, func(ctx context.Context, _ bool) error { return s.look(ctx, do) })
}

// look reads beside the writer, once. Close waits for it.
func (s *Store) look(ctx context.Context, do func(tx runner) error) error {
	s.reading.RLock()
	defer s.reading.RUnlock()
	if s.closed.Load() {
		return fmt.Errorf("the store is closed: %w", sluice.ErrUnavailable)
	}
	if err := s.writer.file.check(); err != nil {
		return err
	}
	tx := readTx{ctx, s.db, &s.lookUps}
	if err := s.mayWork(tx); err != nil {
		return err
	}
	return do(tx)
}

func (s *Store) call(ctx context.Context, verb string, do func(ctx context.Context, again bool) error) error {
	callerCtx := ctx
	ctx, cancel := context.WithTimeout(ctx, s.options.CallTimeout)
	defer cancel()
	var fault error // why the last try failed that was made to its end
	wait := 5 * time.Millisecond
	for again := false; ; again = true {
		if s.closed.Load() {
			return fmt.Errorf("%s: the store is closed: %w", verb, sluice.ErrUnavailable)
		}
		err := do(ctx, again)
		if err == nil {
			return nil
		}
		if fault == nil || ctx.Err() == nil { // that the time was over in the midst of a try is no cause
			fault = err
		}
		switch {
		case callerCtx.Err() != nil && busy(fault):
			return fmt.Errorf("%s: %w: %w: %w", verb, callerCtx.Err(), sluice.ErrUnavailable, fault)
		case callerCtx.Err() != nil:
			return fmt.Errorf("%s: %w", verb, callerCtx.Err())
		case s.closed.Load():
			return fmt.Errorf("%s: the store was closed: %w: %w", verb, sluice.ErrUnavailable, err)
		case ctx.Err() == nil && !busy(err) && !errors.Is(err, errUndone):
			return fmt.Errorf("%s: %w", verb, typed(ofFollower(readTx{ctx, s.db, &s.lookUps}, err)))
		}
		select {
		case <-ctx.Done():
			if callerCtx.Err() != nil {
				return fmt.Errorf("%s: %w: %w: %w", verb, callerCtx.Err(), sluice.ErrUnavailable, fault)
			}
			return fmt.Errorf("%s: gave up after %s: %w: %w", verb, s.options.CallTimeout, sluice.ErrUnavailable, fault)
		case <-time.After(wait/2 + rand.N(wait)):
		}
		wait = min(2*wait, 500*time.Millisecond)
	}
}

// SQLite's result codes that callers may act on.
const (
	codeError      = 1
	codeBusy       = 5
	codeLocked     = 6
	codeReadOnly   = 8
	codeIO         = 10
	codeFull       = 13
	codeCantOpen   = 14
	codeConstraint = 19
	codeMismatch   = 20
	codeAuth       = 23
	codeNotADB     = 26
)

// codeOf gives SQLite's primary result code; 0 if the error is not SQLite's, or of a driver that
// does not tell.
func codeOf(err error) int {
	var coded interface{ Code() int }
	if errors.As(err, &coded) {
		return coded.Code() & 0xff
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if code := codeIn(reflect.ValueOf(err)); code != 0 {
			return code & 0xff
		}
	}
	return 0
}

// codeIn reads the code of another driver's error: mattn's has a field, ncruces' a method, of types of their own.
func codeIn(err reflect.Value) int {
	if method := err.MethodByName("Code"); method.IsValid() && method.Type().NumIn() == 0 && method.Type().NumOut() == 1 {
		if code := method.Call(nil)[0]; code.CanUint() {
			return int(code.Uint())
		}
		return 0
	}
	if err.Kind() == reflect.Struct {
		if code := err.FieldByName("Code"); code.IsValid() && code.CanInt() {
			return int(code.Int())
		}
	}
	return 0
}

func busy(err error) bool {
	code := codeOf(err)
	return code == codeBusy || code == codeLocked || code == 0 && strings.Contains(err.Error(), "database is locked")
}

// Outage reports whether an error says that this store's file could not be read, written or locked, for no fault of the
// caller's. Handlers meet such errors in their own transactions.
func (s *Store) Outage(err error) bool {
	switch codeOf(err) {
	case codeFull, codeReadOnly, codeIO, codeCantOpen:
		return true
	}
	return errors.Is(err, sluice.ErrUnavailable) || busy(err)
}

// typed gives the errors a caller may act on their names, and says what to do.
func typed(err error) error {
	switch codeOf(err) {
	case codeFull:
		return fmt.Errorf("the disk is full: free some space; nothing acknowledged is lost: %w: %w", sluice.ErrUnavailable, err)
	case codeReadOnly:
		return fmt.Errorf("the file or its folder is read-only: %w: %w", sluice.ErrUnavailable, err)
	case codeIO, codeCantOpen:
		return fmt.Errorf("the file cannot be opened, read or written: look at its folder and the disk: %w: %w", sluice.ErrUnavailable, err)
	case codeAuth:
		return fmt.Errorf("the store changes nothing of the schema of Sluice, and attaches no file; «sluice migrate» and sqlite3 do: %w", err)
	case codeNotADB:
		return fmt.Errorf("the file is not a SQLite database: %w", err)
	}
	if _, text, moved := strings.Cut(err.Error(), migration.MovedText); moved {
		to, _, _ := strings.Cut(text, " (")
		return fmt.Errorf("%w to %s; use that one", sluice.ErrMoved, to)
	}
	if strings.Contains(err.Error(), "no such table: sluice_") {
		return fmt.Errorf("%w: run «sluice migrate»: %w", sluice.ErrNotMigrated, err)
	}
	return err
}
