package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
)

const (
	// maxGroup is how many writes one commit holds at most. The limit bounds how long the first of
	// them waits for the last.
	maxGroup = 128
	// maxGroupTime ends the collection of a group once its writes have taken this long.
	maxGroupTime = 4 * time.Millisecond
	// watchInterval is how often the writer checks for writes of other connections and processes,
	// while a caller watches. One check costs some microseconds.
	watchInterval = 10 * time.Millisecond
	// lockWait is how long SQLite waits for the write lock before it reports busy. The writer then
	// checks whether the caller still waits.
	lockWait = 500 * time.Millisecond
)

// writer owns the connection that writes. SQLite allows one writer at a time anyway. With one
// goroutine, callers queue here instead of polling for the file's lock, and all waiting writes
// share a commit, which waits for the disk.
type writer struct {
	store    *Store
	conn     *sql.Conn
	file     *file
	library  library
	prepared map[string]*sql.Stmt
	callers  map[string]*sql.Stmt // statements of callers
	queue    chan *write
	quit     chan struct{}
	done     chan struct{}
	watchers atomic.Int32
	locking  atomic.Bool // the writer waits for the file's lock
	version  int64       // of the file; PRAGMA data_version counts commits of others
	waits    waits
	foreign  foreignEnds
}

// write is a caller's work in the queue.
type write struct {
	ctx     context.Context
	do      func(tx *groupTx) error
	foreign bool // do runs statements of the caller
	state   atomic.Int32
	err     error // the outcome; readable once done is closed
	done    chan struct{}
}

// The states of a write. Either the writer takes it, or its caller gives it up first.
const (
	writeQueued int32 = iota
	writeTaken
	writeGivenUp
)

// errUndone is the error of a write that was undone because another write of its group failed. None
// of it is stored.
var errUndone = fmt.Errorf("undone together with another write: %w", sluice.ErrUnavailable)

// errLocked is the reason why a write was given up before its turn came.
var errLocked = errors.New("another process holds the file's lock: database is locked")

func startWriter(ctx context.Context, s *Store) (*writer, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, typed(err)
	}
	w := &writer{
		store: s, conn: conn, prepared: make(map[string]*sql.Stmt), callers: make(map[string]*sql.Stmt),
		waits: waits{from: time.Now()},
		queue: make(chan *write, 4*maxGroup), quit: make(chan struct{}), done: make(chan struct{}),
	}
	if err := w.setUp(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	go w.run()
	return w, nil
}

// setUp sets the pragmas that SQLite forgets with each connection, and the journal mode, which
// stays in the file.
func (w *writer) setUp(ctx context.Context) error {
	synchronous := "full"
	if w.store.options.Relaxed {
		synchronous = "normal"
	}
	for _, pragma := range []string{
		fmt.Sprintf("pragma busy_timeout = %d", lockWait.Milliseconds()),
		"pragma synchronous = " + synchronous,
		"pragma journal_size_limit = 67108864",
		"pragma cache_size = -32768",
		"pragma wal_autocheckpoint = 4000",
		"pragma temp_store = memory", // otherwise SQLite writes what it needs to undo a large statement to a temporary file
	} {
		if _, err := w.conn.ExecContext(ctx, pragma); err != nil {
			return fmt.Errorf("%s: %w", pragma, typed(err))
		}
	}
	var mode string
	if err := w.conn.QueryRowContext(ctx, "pragma journal_mode = wal").Scan(&mode); err != nil {
		return fmt.Errorf("set the journal mode: %w", typed(err))
	}
	if mode != "wal" {
		return fmt.Errorf("the journal mode is %q instead of wal: the file is in memory, read-only, or on a file system that cannot share memory", mode)
	}
	var err error
	w.file, w.library, err = fileOf(ctx, w.conn, w.store.db)
	return err
}

func (w *writer) stop() {
	close(w.quit)
	<-w.done
}

// submit queues work for the writer's goroutine, and waits until the work is committed, undone or
// given up.
func (w *writer) submit(ctx context.Context, do func(tx *groupTx) error) error {
	job := &write{ctx: ctx, do: do, err: errUndone, done: make(chan struct{})}
	if err := w.push(job); err != nil {
		return err
	}
	return w.await(job)
}

// transact is submit for work that runs on the caller's goroutine, so that a panic stays there.
func (w *writer) transact(ctx context.Context, do func(tx *groupTx) error) error {
	turn, finished := make(chan *groupTx), make(chan error, 1)
	job := &write{ctx: ctx, foreign: true, err: errUndone, done: make(chan struct{}), do: func(tx *groupTx) error {
		turn <- tx
		return <-finished
	}}
	if err := w.push(job); err != nil {
		return err
	}
	select {
	case tx := <-turn:
		doAsCaller(tx, do, finished)
	case <-job.done:
	case <-ctx.Done():
		if job.state.CompareAndSwap(writeQueued, writeGivenUp) {
			return w.givenUp(ctx)
		}
		select { // its turn came at this moment
		case tx := <-turn:
			doAsCaller(tx, do, finished)
		case <-job.done:
		}
	case <-w.done:
	}
	return w.await(job)
}

// doAsCaller runs a caller's work and reports its outcome to the writer, even if the work panics or
// ends its goroutine.
func doAsCaller(tx *groupTx, do func(tx *groupTx) error, finished chan<- error) {
	err := errors.New("the work did not return")
	defer func() {
		tx.closeRows()
		finished <- err
	}()
	err = do(tx)
}

func (w *writer) push(job *write) error {
	select {
	case w.queue <- job:
		return nil
	case <-job.ctx.Done():
		return job.ctx.Err()
	case <-w.quit:
		return sluice.ErrUnavailable
	}
}

// await waits for a write. Once its turn has come, await ignores the context, because the write may
// be committed.
func (w *writer) await(job *write) error {
	select {
	case <-job.done:
		return job.err
	case <-job.ctx.Done():
		if job.state.CompareAndSwap(writeQueued, writeGivenUp) {
			return w.givenUp(job.ctx)
		}
	case <-w.done:
	}
	select {
	case <-job.done:
		return job.err
	case <-w.done:
		select {
		case <-job.done: // done just before the writer ended
			return job.err
		default:
			return sluice.ErrUnavailable
		}
	}
}

// givenUp returns the reason why a write waited until its caller gave it up.
func (w *writer) givenUp(ctx context.Context) error {
	if w.locking.Load() {
		return fmt.Errorf("%w: %w", errLocked, ctx.Err())
	}
	return ctx.Err()
}

func (w *writer) run() {
	defer close(w.done)
	defer w.closeConn()
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-w.quit:
			return
		case first := <-w.queue:
			w.commitGroup(first)
		case <-tick.C:
			w.lookForOthers()
		}
	}
}

// closeConn closes the connection, and before that its statements: while one is open, SQLite keeps
// the connection, its files and the log.
func (w *writer) closeConn() {
	for _, stmts := range []map[string]*sql.Stmt{w.prepared, w.callers} {
		for _, stmt := range stmts {
			_ = stmt.Close()
		}
		clear(stmts)
	}
	_ = w.conn.Close()
}

// commitGroup runs a write, and the writes that wait behind it, in one transaction.
func (w *writer) commitGroup(first *write) {
	group := []*write{first}
	defer func() {
		for _, job := range group {
			close(job.done)
		}
	}()
	if err := w.begin(first.ctx); err != nil {
		first.err = err
		return
	}
	tx := &groupTx{writer: w}
	outcomes := []error{w.runFirst(tx, first)}
	for begun := time.Now(); len(group) < maxGroup && time.Since(begun) < maxGroupTime && tx.broken == nil; {
		select {
		case next := <-w.queue:
			group = append(group, next)
			outcomes = append(outcomes, w.runOne(tx, next))
			continue
		default:
		}
		break
	}
	w.commit(tx, group, outcomes)
}

// commit ends a group's transaction. Only then is the outcome of its writes known.
func (w *writer) commit(tx *groupTx, group []*write, outcomes []error) {
	err := tx.broken
	if err == nil {
		err = w.file.checkNow()
	}
	if err == nil {
		err = w.end("commit")
	}
	if err != nil {
		_ = w.end("rollback") // there may be nothing to roll back
	}
	for i, job := range group {
		switch {
		case outcomes[i] != nil:
			job.err = outcomes[i]
		case err != nil && len(group) == 1:
			job.err = fmt.Errorf("commit: %w", err)
		case err != nil:
			job.err = fmt.Errorf("%w: %w", errUndone, err)
		default:
			job.err = nil
		}
	}
	if err != nil {
		return
	}
	for _, signal := range tx.signals {
		if signal.Ended.IsZero() || w.store.awaited.Take(signal.Ended) {
			w.store.signals.Send(signal)
		}
	}
	for _, m := range tx.moves {
		w.store.tally.Moved(m.queue, m.tenant, m.event, 1)
	}
}

// begin takes the write lock, which another process may hold for a while.
func (w *writer) begin(ctx context.Context) error {
	err := w.file.check()
	if err != nil {
		return err
	}
	begun := time.Now()
	w.locking.Store(true)
	defer func() {
		w.locking.Store(false)
		w.waits.took(time.Since(begun))
	}()
	for ctx.Err() == nil {
		if err = w.end("begin immediate"); err == nil {
			return w.checkSchema(ctx)
		}
		if !busy(err) {
			return err
		}
	}
	if err == nil { // the caller gave the write up before its turn came
		return ctx.Err()
	}
	return errLocked
}

// checkSchema rolls back a new transaction if this program is too old for the schema. No process
// can change the schema before the transaction ends.
func (w *writer) checkSchema(ctx context.Context) error {
	err := w.store.mayWork(foreignTx{ctx, w.conn})
	if err != nil {
		_ = w.end("rollback")
	}
	return err
}

// runFirst runs the first write of a transaction without a savepoint, for which SQLite would copy each page that the
// write changes. If the write fails, the whole transaction is undone. Statements of callers run between savepoints: they
// may end the transaction in silence, by an "or rollback".
func (w *writer) runFirst(tx *groupTx, job *write) error {
	if job.foreign {
		return w.runOne(tx, job)
	}
	if tx.broken = job.take(); tx.broken == nil {
		tx.broken = job.do(tx)
	}
	return tx.broken
}

// runOne runs one write between savepoints, so that it can be undone without the others. If even
// that fails, SQLite has undone the whole transaction, as when the disk is full.
func (w *writer) runOne(tx *groupTx, job *write) error {
	if err := job.take(); err != nil {
		return err
	}
	if tx.broken = w.end("savepoint one"); tx.broken != nil {
		return fmt.Errorf("%w: %w", errUndone, tx.broken)
	}
	sent, made := len(tx.signals), len(tx.moves)
	err := job.do(tx)
	if err != nil {
		tx.signals, tx.moves = tx.signals[:sent], tx.moves[:made]
		if broken := w.end("rollback to one"); broken != nil {
			tx.broken = errors.Join(broken, err)
			return err
		}
	}
	tx.broken = w.end("release one")
	return err
}

// take takes a write from its caller, who cannot give it up from then on.
func (job *write) take() error {
	if err := job.ctx.Err(); err != nil {
		return err
	}
	if !job.state.CompareAndSwap(writeQueued, writeTaken) {
		return errUndone // given up: no caller reads the error
	}
	return nil
}

// end runs a statement that begins or ends a transaction or savepoint.
func (w *writer) end(statement string) error {
	stmt, err := w.prepare(statement)
	if err != nil {
		return err
	}
	_, err = stmt.Exec()
	return err
}

func (w *writer) prepare(text string) (*sql.Stmt, error) {
	if stmt := w.prepared[text]; stmt != nil {
		return stmt, nil
	}
	stmt, err := w.conn.PrepareContext(context.Background(), text)
	if err != nil {
		return nil, err
	}
	w.prepared[text] = stmt
	return stmt, nil
}

// maxCallers is how many statements of callers are kept prepared. Statements with values in their
// text would otherwise fill the memory.
const maxCallers = 256

// prepareFor prepares a caller's statement.
func (w *writer) prepareFor(ctx context.Context, text string) (*sql.Stmt, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if stmt := w.callers[text]; stmt != nil {
		return stmt, nil
	}
	if len(w.callers) >= maxCallers {
		for _, stmt := range w.callers {
			_ = stmt.Close()
		}
		clear(w.callers)
	}
	stmt, err := w.conn.PrepareContext(context.WithoutCancel(ctx), text)
	if err != nil {
		return nil, err
	}
	w.callers[text] = stmt
	return stmt, nil
}

// lookForOthers wakes this process's workers when another process, or a transaction of the caller,
// has committed, and tells those who wait for a job that it has ended there.
func (w *writer) lookForOthers() {
	if w.watchers.Load() == 0 {
		return
	}
	if w.changed() {
		w.foreign.due = true
		w.store.signals.Send(sluice.Signal{})
	}
	if !w.store.awaited.Any() {
		return
	}
	// Whoever waits looks at its jobs by itself too, so an error may be left to the next look.
	_ = w.foreign.look(&groupTx{writer: w}, func(id sluice.ID) {
		if w.store.awaited.Take(id) {
			w.store.signals.Send(sluice.Signal{Ended: id})
		}
	})
}

// changed reports whether others have committed since the last call.
func (w *writer) changed() bool {
	stmt, err := w.prepare("pragma data_version")
	if err != nil {
		return false
	}
	version := w.version
	if err := stmt.QueryRow().Scan(&version); err != nil || version == w.version {
		return false
	}
	w.version = version
	return true
}

// Watch calls signal for each signal of this process until ctx ends. A commit of another process
// arrives as a signal without a queue.
func (s *Store) Watch(ctx context.Context, signal func(sluice.Signal)) error {
	if err := sluice.CheckGiven("signal", signal); err != nil {
		return err
	}
	s.writer.watchers.Add(1)
	defer s.writer.watchers.Add(-1)
	s.signals.Listen(ctx, signal, sluice.Signal{Hearing: sluice.HearsAll})
	return nil
}
