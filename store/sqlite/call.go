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

// Tx is the part of a transaction that the store's statements need. A *sql.Tx implements Tx, and so
// does the transaction that [Store.Transact] passes.
type Tx interface {
	ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// runner runs the store's statements: prepared on the writer, as they are in a caller's
// transaction.
type runner interface {
	exec(text string, args ...any) (sql.Result, error)
	query(text string, args ...any) (*sql.Rows, error)
	// signal sends a signal after the commit, if the runner can see the commit.
	signal(sluice.Signal)
	ended(sluice.ID)
	// moved counts a move after the commit, if the runner can see the commit.
	moved(queue, tenant string, event sluice.Event)
}

// move is a job's move, to be counted after the commit.
type move struct {
	queue, tenant string
	event         sluice.Event
}

// groupTx is the part of the writer's open transaction that one write sees.
type groupTx struct {
	writer  *writer
	signals []sluice.Signal
	moves   []move
	rows    []*sql.Rows // rows that a caller asked for; rows left open would keep the transaction open
	broken  error       // set when the transaction, with all its writes, is lost
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

// ended signals the end of a job for which somebody waits.
func (t *groupTx) ended(id sluice.ID) {
	if t.writer.store.awaited.Any() {
		t.signal(sluice.Signal{Ended: id})
	}
}

func (t *groupTx) moved(queue, tenant string, event sluice.Event) {
	t.moves = append(t.moves, move{queue, tenant, event})
}

// ExecContext runs a caller's statement. A statement that has begun runs to its end: if
// interrupted, SQLite would undo the writes of all other callers with it.
func (t *groupTx) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	stmt, err := t.writer.prepareFor(ctx, text)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(context.WithoutCancel(ctx), args...)
}

// QueryContext runs a caller's query. The writer closes the rows when the caller's function
// returns.
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

// foreignTx runs the store's statements in a caller's own transaction.
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

func (foreignTx) signal(sluice.Signal) {} // the writer notices the commit by the file's version

func (foreignTx) ended(sluice.ID) {}

func (foreignTx) moved(string, string, sluice.Event) {}

// runnerOf returns the runner for a transaction. The writer's own transaction keeps its prepared
// statements.
func runnerOf(ctx context.Context, tx Tx) runner {
	if group, ok := tx.(*groupTx); ok {
		return group
	}
	return foreignTx{ctx, tx}
}

// readTx runs the store's statements for a read.
type readTx struct {
	ctx  context.Context
	db   *sql.DB
	kept *statements // nil: no statement is kept prepared
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

func (readTx) ended(sluice.ID) {}

func (readTx) moved(string, string, sluice.Event) {}

// statements keeps the statements of reads prepared. SQLite spends more time parsing most of them
// than running them.
type statements struct {
	mu     sync.Mutex
	byText map[string]*sql.Stmt
	closed bool
}

// maxStatements is how many statements are kept. The store has fewer; the limit guards against
// texts that contain values, which would fill the memory.
const maxStatements = 256

// explains reports whether a statement explains another one's plan. A prepared explanation would go
// stale: it would explain the plan of the moment when it was prepared, even if a named table is
// gone.
func explains(text string) bool { return strings.HasPrefix(text, "explain ") }

// prepare returns a prepared statement, which database/sql prepares on each connection that runs
// it. Nil: the statement is not kept.
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
	if other := s.byText[text]; other != nil || s.closed { // another goroutine was faster
		return other, stmt.Close()
	}
	if s.byText == nil {
		s.byText = make(map[string]*sql.Stmt)
	}
	s.byText[text] = stmt
	return stmt, nil
}

// close closes the statements, because the database may belong to the caller.
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

// list runs a statement and collects its rows.
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

// write runs do in the writer's next transaction, under the store's deadline, and repeats it after
// a transient fault. Again is true if an earlier try may have been committed.
func (s *Store) write(ctx context.Context, verb string, do func(tx runner, again bool) error) error {
	return s.call(ctx, verb, func(ctx context.Context, again bool) error {
		return s.writer.submit(ctx, func(tx *groupTx) error { return do(tx, again) })
	})
}

// read runs a read under the store's deadline, and repeats it after a transient fault.
func (s *Store) read(ctx context.Context, verb string, do func(tx runner) error) error {
	return s.call(ctx, verb, func(ctx context.Context, _ bool) error { return s.look(ctx, do) })
}

// look reads once, on a connection beside the writer. [Store.Close] waits for it.
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
	var fault error // the error of the last try that ran to its end
	wait := 5 * time.Millisecond
	for again := false; ; again = true {
		if s.closed.Load() {
			return fmt.Errorf("%s: the store is closed: %w", verb, sluice.ErrUnavailable)
		}
		err := do(ctx, again)
		if err == nil {
			return nil
		}
		if fault == nil || ctx.Err() == nil { // a timeout in the middle of a try is no cause
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

// SQLite result codes that callers may act on.
const (
	codeError      = 1
	codeBusy       = 5
	codeLocked     = 6
	codeReadOnly   = 8
	codeIO         = 10
	codeCorrupt    = 11
	codeFull       = 13
	codeCantOpen   = 14
	codeConstraint = 19
	codeMismatch   = 20
	codeAuth       = 23
	codeNotADB     = 26
)

// codeOf returns SQLite's primary result code. 0: the error is not SQLite's, or its driver exposes
// no code.
func codeOf(err error) int {
	for ; err != nil; err = errors.Unwrap(err) {
		if code := codeIn(reflect.ValueOf(err)); code != 0 {
			return code & 0xff
		}
		if several, is := err.(interface{ Unwrap() []error }); is { //nolint:errorlint // the loop unwraps
			for _, one := range several.Unwrap() {
				if code := codeOf(one); code != 0 {
					return code
				}
			}
		}
	}
	return 0
}

// codeIn reads the code from a driver's error: a field in mattn's, a method in the others', each of
// its own type. The packages of all drivers have sqlite in their names. Errors of others may have a
// code too, such as an HTTP status.
func codeIn(err reflect.Value) int {
	of := err.Type()
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if !strings.Contains(of.PkgPath(), "sqlite") {
		return 0
	}
	if method := err.MethodByName("Code"); method.IsValid() && method.Type().NumIn() == 0 && method.Type().NumOut() == 1 {
		return number(method.Call(nil)[0])
	}
	if err.Kind() == reflect.Struct {
		return number(err.FieldByName("Code"))
	}
	return 0
}

// number returns the value of any type of integer, 0 for others.
func number(of reflect.Value) int {
	switch {
	case !of.IsValid():
		return 0
	case of.CanInt():
		return int(of.Int())
	case of.CanUint():
		return int(of.Uint())
	}
	return 0
}

func busy(err error) bool {
	code := codeOf(err)
	return code == codeBusy || code == codeLocked || code == 0 && strings.Contains(err.Error(), "database is locked")
}

// Outage reports whether an error means that the store's file could not be read, written or locked,
// for a reason outside the caller. Handlers meet such errors in their own transactions.
func (s *Store) Outage(err error) bool {
	switch codeOf(err) {
	case codeFull, codeReadOnly, codeIO, codeCorrupt, codeCantOpen:
		return true
	}
	return errors.Is(err, sluice.ErrUnavailable) || busy(err)
}

// typed wraps errors that callers may act on in the error values of this module, with advice.
func typed(err error) error {
	switch codeOf(err) {
	case codeFull:
		return fmt.Errorf("%w: free some space; nothing acknowledged is lost: %w", sluice.ErrDiskFull, err)
	case codeReadOnly:
		return fmt.Errorf("the file or its folder is read-only: %w: %w", sluice.ErrUnavailable, err)
	case codeIO, codeCantOpen:
		return fmt.Errorf("the file cannot be opened, read or written: look at its folder and the disk: %w: %w", sluice.ErrUnavailable, err)
	case codeAuth:
		return fmt.Errorf("the store changes nothing of the schema of Sluice, and attaches no file; `sluice migrate` and sqlite3 do: %w", err)
	case codeCorrupt:
		return fmt.Errorf("the file is damaged: %w", err)
	case codeNotADB:
		return fmt.Errorf("the file is not a SQLite database: %w", err)
	}
	if _, text, moved := strings.Cut(err.Error(), migration.MovedText); moved {
		to, _, _ := strings.Cut(text, " (")
		return fmt.Errorf("%w to %s; use that one", sluice.ErrMoved, to)
	}
	if strings.Contains(err.Error(), "no such table: sluice_") {
		return fmt.Errorf("%w: run `sluice migrate`: %w", sluice.ErrNotMigrated, err)
	}
	return err
}
