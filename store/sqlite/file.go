package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

// ErrFileReplaced means that the file or its log was deleted, moved or replaced while the store was
// open. The error also means that file and log do not belong together. Further writes would be
// lost, so the store refuses writes and reads.
var ErrFileReplaced = errors.New("the SQLite file was deleted, moved or replaced")

// fileCheckInterval is the least time between two checks by reads and by beginning writes. They
// check that the file is still the opened one, and that no other SQLite library of the program has
// it open. Each commit checks the file itself.
const fileCheckInterval = 100 * time.Millisecond

// file is the file behind a database, and the two files that SQLite keeps beside it. If one is
// moved or deleted while it is open, writes would go into a file that no program opens again.
type file struct {
	path  string
	parts []part

	mu        sync.Mutex
	looked    time.Time
	last      error // the result of the last check
	neighbour neighbour
}

// part is a file as it was opened.
type part struct {
	path   string
	opened os.FileInfo
}

// fileOf finds the database file of a connection, and opens its log first.
func fileOf(ctx context.Context, conn *sql.Conn, db *sql.DB) (*file, library, error) {
	var tables int
	if err := conn.QueryRowContext(ctx, "select count(*) from sqlite_master").Scan(&tables); err != nil { // opens the log
		return nil, library{}, fmt.Errorf("read the file: %w", typed(err))
	}
	own, err := libraryOf(foreignTx{ctx, conn})
	if err != nil {
		return nil, library{}, fmt.Errorf("find the file: %w", typed(err))
	}
	f := &file{path: own.path, neighbour: newNeighbour(own.path, db)}
	for _, beside := range []string{"", "-wal", "-shm"} {
		opened, err := os.Stat(f.path + beside)
		switch {
		case err == nil:
			f.parts = append(f.parts, part{f.path + beside, opened})
		case beside == "":
			return nil, library{}, fmt.Errorf("find the file: %w", err)
		}
	}
	return f, own, f.neighbour.check(f.path)
}

// check checks that the file is still in its place, at most once per fileCheckInterval.
func (f *file) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.looked) < fileCheckInterval {
		return f.last
	}
	if f.last = f.look(); f.last == nil {
		f.last = f.neighbour.check(f.path)
	}
	f.looked = time.Now()
	return f.last
}

// checkNow checks at once, before a commit is acknowledged.
func (f *file) checkNow() error { return f.look() }

func (f *file) look() error {
	for _, p := range f.parts {
		now, err := os.Stat(p.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: %s was deleted or moved while the store was open. Put back what was moved, or end all programs that use it, restore a backup, remove %s-wal and %s-shm, and start them again: %w",
				ErrFileReplaced, p.path, f.path, f.path, sluice.ErrUnavailable)
		case err != nil:
			return fmt.Errorf("look at the file: %w: %w", err, sluice.ErrUnavailable)
		case !os.SameFile(p.opened, now):
			return fmt.Errorf("%w: another file lies at %s than the one that the store has open. End all programs that use it, make sure that %s is the right one, and start them again: %w",
				ErrFileReplaced, p.path, f.path, sluice.ErrUnavailable)
		}
	}
	return nil
}

// refuseOrphan refuses a log without its file. SQLite would delete such a log, and lose all jobs
// that only the log holds.
func refuseOrphan(path string) error {
	info, err := os.Stat(path)
	if there := err == nil && info.Size() > 0; there || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil //nolint:nilerr // opening the file reports the error
	}
	log, err := os.Stat(path + "-wal")
	if err != nil || log.Size() == 0 {
		return nil //nolint:nilerr // there is no log that could be lost
	}
	return fmt.Errorf("%w: %s is not there or empty, and beside it lies its log %s-wal with %d bytes: put the file back to which it belongs; or, to begin with an empty store or a backup, first move %s-wal and %s-shm away",
		ErrFileReplaced, path, path, log.Size(), path, path)
}
