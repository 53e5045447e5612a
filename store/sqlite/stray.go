package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"time"

	"github.com/sluice-queue/sluice"
)

//go:embed sql/stray_put.sql
var strayPutSQL string

//go:embed sql/stray_list.sql
var strayListSQL string

//go:embed sql/stray_forget.sql
var strayForgetSQL string

// noteStray notes the run of a job that is about to be cancelled, if one may exist.
func noteStray(tx runner, row held) error {
	if row.state == sluice.StateQueued {
		return nil
	}
	_, err := tx.exec(strayPutSQL, row.seq, now())
	return err
}

// StrayRuns lists runs whose jobs were cancelled.
func (s *Store) StrayRuns(ctx context.Context, queue string, after sluice.StrayRun, limit int) ([]sluice.StrayRun, error) {
	at := int64(0)
	if !after.CancelledAt.IsZero() {
		at = after.CancelledAt.UnixMicro()
	}
	var out []sluice.StrayRun
	err := s.read(ctx, "list stray runs", func(tx runner) (err error) {
		out, err = list(tx, scanStray, strayListSQL, queue, at, after.JobID[:], limit)
		return err
	})
	return out, err
}

func scanStray(rows *sql.Rows) (sluice.StrayRun, error) {
	var out sluice.StrayRun
	var id []byte
	var at int64
	err := rows.Scan(&id, &out.Queue, &out.Engine, &out.Ref, &at)
	out.JobID, out.CancelledAt = idOf(id), time.UnixMicro(at).UTC()
	return out, err
}

// ForgetStrayRuns strikes runs from what StrayRuns lists.
func (s *Store) ForgetStrayRuns(ctx context.Context, runs []sluice.StrayRun) error {
	if len(runs) == 0 {
		return nil
	}
	return s.write(ctx, "forget stray runs", func(tx runner, _ bool) error {
		for _, run := range runs {
			if _, err := tx.exec(strayForgetSQL, run.JobID[:], run.Ref); err != nil {
				return err
			}
		}
		return nil
	})
}

// Note adds entries to the audit that tell of no move.
func (s *Store) Note(ctx context.Context, entries []sluice.AuditEntry) error {
	for _, entry := range entries {
		if err := entry.CheckNote(); err != nil {
			return err
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return s.write(ctx, "note", func(tx runner, _ bool) error {
		for _, entry := range entries {
			entry.At = time.Time{}
			if err := tell(tx, entry); err != nil {
				return err
			}
		}
		return nil
	})
}
