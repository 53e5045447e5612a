package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/checkup"
	"github.com/sluice-queue/sluice/internal/history"
)

var _ health.Maintainer = (*Store)(nil)

const (
	// lockPatience is how long a task waits for a lock before it looks whether there is time left. Writers wait while a
	// checkpoint waits for readers.
	lockPatience = 500 * time.Millisecond
	// vacuumStep is how many pages one transaction gives back, if the file can give back some.
	vacuumStep = 1000
	// incremental is the auto_vacuum of a file that can. Ours have none, since it slows writes down.
	incremental = 2
)

// Maintain brings the log into the file, or gives free pages back to the disk.
func (s *Store) Maintain(ctx context.Context, task health.Task, dryRun bool) (out health.Maintained, err error) {
	path := s.writer.file.path
	switch {
	case task == health.TaskCheckpoint && dryRun:
		out.Bytes = logOf(path).bytes
		return out, nil
	case task == health.TaskCheckpoint:
		err = s.aside(ctx, func(conn *sql.Conn) error { return s.checkpoint(ctx, conn, &out) })
	default:
		err = s.aside(ctx, func(conn *sql.Conn) error { return s.vacuum(ctx, conn, dryRun, &out) })
	}
	if err != nil {
		return out, fmt.Errorf("%s of %s: %w", task, path, typed(err))
	}
	return out, nil
}

// aside works on a connection beside the writer's, outside of a transaction. It waits for a lock no longer than lockPatience.
func (s *Store) aside(ctx context.Context, do func(conn *sql.Conn) error) error {
	return s.look(ctx, func(runner) error {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return err
		}
		var patience int
		if err = conn.QueryRowContext(ctx, "pragma busy_timeout").Scan(&patience); err == nil {
			err = setPatience(ctx, conn, int(lockPatience.Milliseconds()))
		}
		if err == nil {
			err = errors.Join(do(conn), setPatience(context.WithoutCancel(ctx), conn, patience))
		}
		return errors.Join(err, conn.Close())
	})
}

// setPatience sets for how many ms a connection waits for a lock.
func setPatience(ctx context.Context, conn *sql.Conn, ms int) error {
	_, err := conn.ExecContext(ctx, fmt.Sprintf("pragma busy_timeout = %d", ms))
	return err
}

// checkpoint brings most of the log into the file while others write, and then the rest while they wait.
func (s *Store) checkpoint(ctx context.Context, conn *sql.Conn, out *health.Maintained) error {
	before := logOf(s.writer.file.path).bytes
	if _, err := conn.ExecContext(ctx, "pragma wal_checkpoint(passive)"); err != nil {
		return err
	}
	var blocked, all, done int
	err := conn.QueryRowContext(ctx, "pragma wal_checkpoint(truncate)").Scan(&blocked, &all, &done)
	out.Bytes += before - logOf(s.writer.file.path).bytes
	if blocked != 0 {
		out.Left = append(out.Left, s.blockedLog(ctx, all-done))
	}
	return err
}

// blockedLog says why the log could not be cut.
func (s *Store) blockedLog(ctx context.Context, pages int) string {
	why := fmt.Sprintf("the log was not cut, and %d of its pages are not in the file: ", pages)
	if readers := (&examination{store: s, path: s.writer.file.path}).readers(ctx); len(readers) > 0 {
		return why + "a read is kept open by " + names(readers)
	}
	return why + "another program reads or writes the file"
}

// vacuum gives free pages back. A file with auto_vacuum gives them back step by step; another is written anew, while all
// writers wait.
func (s *Store) vacuum(ctx context.Context, conn *sql.Conn, dryRun bool, out *health.Maintained) error {
	before, err := pagesOf(ctx, conn)
	if err != nil {
		return err
	}
	if dryRun || before.free == 0 {
		out.Bytes = before.free * before.size
		return nil
	}
	if before.mode == incremental {
		err = s.giveBack(ctx, out)
	} else {
		err = s.rewrite(ctx, conn, before, out)
	}
	if err != nil {
		return err
	}
	after, err := pagesOf(context.WithoutCancel(ctx), conn)
	if err != nil {
		return err
	}
	if err := s.checkpoint(ctx, conn, out); err != nil && ctx.Err() == nil { // it cuts the file
		return err
	}
	out.Bytes = (before.all - after.all) * before.size
	return nil
}

// giveBack gives free pages back in short transactions until none is left.
func (s *Store) giveBack(ctx context.Context, out *health.Maintained) error {
	for {
		var left int64
		err := s.write(ctx, "give free pages back", func(tx runner, _ bool) error {
			if _, err := list(tx, scanNone, fmt.Sprintf("pragma incremental_vacuum(%d)", vacuumStep)); err != nil {
				return err
			}
			free, err := list(tx, scanOne[int64], "pragma freelist_count")
			if err == nil {
				left = free[0]
			}
			return err
		})
		if err != nil || left == 0 {
			return leave(ctx, err, out, "the time was over before all free pages were given back")
		}
	}
}

// leave notes what is left if the time was over. Any other error is returned.
func leave(ctx context.Context, err error, out *health.Maintained, left string) error {
	if err != nil && ctx.Err() != nil {
		out.Left = append(out.Left, left)
		return nil //nolint:nilerr // Left says it
	}
	return err
}

// scanNone is for a statement with a row for each step, and no columns.
func scanNone(*sql.Rows) (struct{}, error) { return struct{}{}, nil }

// rewrite writes the file anew without its free pages. At the deadline of ctx, SQLite leaves the file as it was.
func (s *Store) rewrite(ctx context.Context, conn *sql.Conn, pages pages, out *health.Maintained) error {
	used := (pages.all - pages.free) * pages.size
	if disk, err := s.diskOf(filepath.Dir(s.writer.file.path)); err == nil && disk.known && disk.free < 2*used {
		return fmt.Errorf("it writes the file anew, which takes %s on the disk, and %s are free: %w", checkup.Bytes(float64(2*used)), checkup.Bytes(float64(disk.free)), sluice.ErrNotAllowed)
	}
	_, err := conn.ExecContext(ctx, "vacuum")
	for err != nil && busy(err) && ctx.Err() == nil {
		_, err = conn.ExecContext(ctx, "vacuum")
	}
	return leave(ctx, err, out, "the time was over before the file was written anew, so it is as it was: run `sluice upkeep now vacuum --timeout 10m` beside it while nothing is urgent, since everybody who writes waits meanwhile")
}

// pages are the pages of the file.
type pages struct{ all, free, size, mode int64 }

func pagesOf(ctx context.Context, conn *sql.Conn) (p pages, err error) {
	return p, conn.QueryRowContext(ctx, "select page_count, freelist_count, page_size, auto_vacuum from pragma_page_count, pragma_freelist_count, pragma_page_size, pragma_auto_vacuum").
		Scan(&p.all, &p.free, &p.size, &p.mode)
}

// Overdue counts the jobs that Prune would delete now.
func (s *Store) Overdue(ctx context.Context, limit int) (out []health.Overdue, err error) {
	err = s.read(ctx, "count jobs to prune", func(tx runner) error {
		old, err := findOld(tx, history.Place{}, limit, now())
		out = nil
		for _, span := range old {
			out = append(out, health.Overdue{Queue: span.queue, Outcome: span.outcome, Jobs: span.jobs})
		}
		return err
	})
	return out, err
}
