package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"time"

	"github.com/sluice-queue/sluice"
)

// fileCheckInterval is how often the writer looks whether the file is still the one that it opened.
const fileCheckInterval = time.Second

// file is the file behind a database. Whoever moves or deletes it while it is open would let us write
// on into what nobody will find again.
type file struct {
	path   string
	opened os.FileInfo
	looked time.Time
}

// fileOf finds the file of a connection's database.
func fileOf(ctx context.Context, conn *sql.Conn) (*file, error) {
	var seq int
	var name, path string
	if err := conn.QueryRowContext(ctx, "pragma database_list").Scan(&seq, &name, &path); err != nil {
		return nil, fmt.Errorf("find the file: %w", typed(err))
	}
	opened, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("find the file: %w", err)
	}
	return &file{path: path, opened: opened, looked: time.Now()}, nil
}

// check looks whether the file is still in its place, now and then.
func (f *file) check() error {
	if time.Since(f.looked) < fileCheckInterval {
		return nil
	}
	now, err := os.Stat(f.path)
	if err != nil || !os.SameFile(f.opened, now) {
		return fmt.Errorf("the file %s was moved, replaced or deleted while it was open; put it back or open the store again: %w", f.path, sluice.ErrUnavailable)
	}
	f.looked = time.Now()
	return nil
}
