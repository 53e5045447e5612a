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

// ErrFileReplaced: the file, or its log, was deleted, moved or replaced while it was open, or is not of the log that lies
// beside it. What would be written goes where nobody finds it, so the store refuses to write and to read.
var ErrFileReplaced = errors.New("the SQLite file was deleted, moved or replaced")

// fileCheckInterval is how often reads, and the beginnings of writes, look whether the file is still the one that was
// opened, and the only library of the program that has it open. What is acknowledged is looked at each time.
const fileCheckInterval = 100 * time.Millisecond

// file is the file behind a database, with the two that SQLite keeps beside it. Whoever moves or deletes one while it is
// open would let us write on into what nobody will find again.
type file struct {
	path  string
	parts []part

	mu        sync.Mutex
	looked    time.Time
	last      error // what the last look has found
	neighbour neighbour
}

// part is a file as it was opened.
type part struct {
	path   string
	opened os.FileInfo
}

// fileOf finds the file of a connection's database, of which the log has been opened.
func fileOf(ctx context.Context, conn *sql.Conn, db *sql.DB) (*file, library, error) {
	var tables int
	if err := conn.QueryRowContext(ctx, "select count(*) from sqlite_master").Scan(&tables); err != nil { // it opens the log
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

// check looks now and then whether the file is still in its place.
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

// checkNow looks at once, before something is acknowledged.
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

// refuseOrphan refuses a log whose file is gone. SQLite would delete it, with all jobs that are in it alone.
func refuseOrphan(path string) error {
	info, err := os.Stat(path)
	if there := err == nil && info.Size() > 0; there || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil //nolint:nilerr // what is there is opened, and what is wrong with it told
	}
	log, err := os.Stat(path + "-wal")
	if err != nil || log.Size() == 0 {
		return nil //nolint:nilerr // there is no log that could be lost
	}
	return fmt.Errorf("%w: %s is not there or empty, and beside it lies its log %s-wal with %d bytes: put the file back to which it belongs; or, to begin with an empty store or a backup, first move %s-wal and %s-shm away",
		ErrFileReplaced, path, path, log.Size(), path, path)
}
