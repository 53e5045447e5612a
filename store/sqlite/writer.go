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
	// maxGroup is how many writes are committed together at the most. It bounds how long the first
	// of them waits for the last.
	maxGroup = 128
	// maxGroupTime ends the gathering of a group once its writes have taken this long.
	maxGroupTime = 4 * time.Millisecond
	// watchInterval is how often the writer looks whether another connection or process has
	// written, while somebody watches. One look costs some microseconds.
	watchInterval = 20 * time.Millisecond
	// lockWait is how long SQLite waits for the write lock before it says busy, and the writer looks
	// whether anybody still wants it.
	lockWait = 500 * time.Millisecond
)

// writer owns the connection that writes. SQLite has one writer at a time anyway; with one
// goroutine the callers queue up here instead of polling for the file's lock, and the commit,
// which waits for the disk, is shared by all who wait.
type writer struct {
	store    *Store
	conn     *sql.Conn
	prepared map[string]*sql.Stmt
	queue    chan *write
	quit     chan struct{}
	done     chan struct{}
	watchers atomic.Int32
	version  int64 // of the file, as PRAGMA data_version counts what others commit
}

// write is a caller's work in the queue.
type write struct {
	ctx  context.Context
	do   func(tx *groupTx) error
	err  error
	done chan struct{}
}

func startWriter(ctx context.Context, s *Store) (*writer, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, typed(err)
	}
	w := &writer{
		store: s, conn: conn, prepared: make(map[string]*sql.Stmt),
		queue: make(chan *write, 4*maxGroup), quit: make(chan struct{}), done: make(chan struct{}),
	}
	if err := w.setUp(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	go w.run()
	return w, nil
}

// setUp sets what SQLite forgets with each connection. The journal mode is kept in the file.
func (w *writer) setUp(ctx context.Context) error {
	synchronous := "full"
	if w.store.options.Relaxed {
		synchronous = "normal"
	}
	for _, pragma := range []string{
		fmt.Sprintf("pragma busy_timeout = %d", lockWait.Milliseconds()),
		"pragma synchronous = " + synchronous,
		"pragma journal_size_limit = 67108864",
		"pragma cache_size = -65536",
		"pragma wal_autocheckpoint = 4000",
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
	return nil
}

func (w *writer) stop() {
	close(w.quit)
	<-w.done
}

// submit queues a caller's work and waits until it is committed, undone or given up.
func (w *writer) submit(ctx context.Context, do func(tx *groupTx) error) error {
	job := &write{ctx: ctx, do: do, done: make(chan struct{})}
	select {
	case w.queue <- job:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.quit:
		return sluice.ErrUnavailable
	}
	select {
	case <-job.done:
		return job.err
	case <-w.done:
		select {
		case <-job.done: // it was done just before the end
			return job.err
		default:
			return sluice.ErrUnavailable
		}
	}
}

func (w *writer) run() {
	defer close(w.done)
	defer func() { _ = w.conn.Close() }()
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

// commitGroup runs a write and those that wait behind it in one transaction.
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
	begun := time.Now()
	w.runOne(tx, first)
	for len(group) < maxGroup && time.Since(begun) < maxGroupTime {
		select {
		case next := <-w.queue:
			group = append(group, next)
			w.runOne(tx, next)
			continue
		default:
		}
		break
	}
	if err := w.end("commit"); err != nil {
		_ = w.end("rollback")
		for _, job := range group {
			job.err = errors.Join(job.err, fmt.Errorf("commit: %w", err))
		}
		return
	}
	for _, signal := range tx.signals {
		w.store.signals.Send(signal)
	}
}

// begin takes the write lock. Another process may hold it for a while.
func (w *writer) begin(ctx context.Context) error {
	var err error
	for ctx.Err() == nil {
		if err = w.end("begin immediate"); err == nil || !busy(err) {
			return err
		}
	}
	if err == nil { // it was given up before its turn came
		return ctx.Err()
	}
	return fmt.Errorf("another process holds the file's lock: %w", err)
}

// runOne runs one write between savepoints, so that it can be undone without the others.
func (w *writer) runOne(tx *groupTx, job *write) {
	if job.err = job.ctx.Err(); job.err != nil {
		return
	}
	if job.err = w.end("savepoint one"); job.err != nil {
		return
	}
	sent := len(tx.signals)
	if job.err = job.do(tx); job.err != nil {
		tx.signals = tx.signals[:sent]
		job.err = errors.Join(job.err, w.end("rollback to one"))
	}
	job.err = errors.Join(job.err, w.end("release one"))
}

// end runs a statement that begins or ends something.
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

// lookForOthers wakes this process's workers when another process, or a transaction of the
// caller's own, has committed something.
func (w *writer) lookForOthers() {
	if w.watchers.Load() == 0 {
		return
	}
	stmt, err := w.prepare("pragma data_version")
	if err != nil {
		return
	}
	version := w.version
	if err := stmt.QueryRow().Scan(&version); err != nil || version == w.version {
		return
	}
	w.version = version
	w.store.signals.Send(sluice.Signal{})
}

// Watch gives the signals of this process, and those of other processes in general terms, until
// ctx ends.
func (s *Store) Watch(ctx context.Context, signal func(sluice.Signal)) error {
	s.writer.watchers.Add(1)
	defer s.writer.watchers.Add(-1)
	s.signals.Listen(ctx, signal)
	return nil
}
