package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/engine"
)

//go:embed sql/orphan_run_put.sql
var strayPutSQL string

//go:embed sql/orphan_run_list.sql
var strayListSQL string

//go:embed sql/orphan_run_forget.sql
var strayForgetSQL string

//go:embed sql/orphan_run_of.sql
var strayOfSQL string

//go:embed sql/orphan_run_open.sql
var strayOpenSQL string

//go:embed sql/orphan_run_beside.sql
var strayBesideSQL string

//go:embed sql/orphan_run_terminate.sql
var strayTerminateSQL string

//go:embed sql/orphan_run_waiting.sql
var strayWaitingSQL string

// noteStray records the run of a job that is about to end before its engine reported the run's
// outcome. Without an engine, noteStray records nothing.
func noteStray(tx runner, row held) error {
	if row.state == sluice.StateQueued {
		return nil
	}
	_, err := tx.exec(strayPutSQL, row.seq, now())
	return err
}

// OrphanRuns lists orphan runs: runs that may be open although their jobs have ended.
func (s *Store) OrphanRuns(ctx context.Context, queue string, after engine.OrphanRun, limit int) ([]engine.OrphanRun, error) {
	at := int64(0)
	if !after.CancelledAt.IsZero() {
		at = after.CancelledAt.UnixMicro()
	}
	var out []engine.OrphanRun
	err := s.read(ctx, "list orphan runs", func(tx runner) (err error) {
		out, err = list(tx, scanStray, strayListSQL, queue, at, after.JobID[:], limit, after.Ref)
		return err
	})
	return out, err
}

func scanStray(rows *sql.Rows) (engine.OrphanRun, error) {
	var out engine.OrphanRun
	var id []byte
	var at int64
	var claimedAt *int64
	err := rows.Scan(&id, &out.Queue, &out.Engine, &out.Ref, &at, &out.Tenant, &out.Generation, &claimedAt, &out.Started,
		&out.Terminate, &out.Beside)
	out.JobID, out.CancelledAt, out.ClaimedAt = idOf(id), time.UnixMicro(at).UTC(), timeOf(claimedAt)
	return out, err
}

// ForgetOrphanRuns deletes orphan runs that have ended, and unblocks the jobs that waited for them.
func (s *Store) ForgetOrphanRuns(ctx context.Context, runs []engine.OrphanRun) error {
	if len(runs) == 0 {
		return nil
	}
	return s.write(ctx, "forget orphan runs", func(tx runner, _ bool) error {
		var waiting []int64
		for _, run := range runs {
			queues, err := list(tx, scanOne[string], strayForgetSQL, run.JobID[:], run.Ref)
			if err != nil {
				return err
			}
			for _, queue := range queues {
				tx.signal(sluice.Signal{Queue: queue})
			}
			seqs, err := list(tx, scanOne[int64], strayWaitingSQL, run.JobID[:])
			if err != nil {
				return err
			}
			waiting = append(waiting, seqs...)
		}
		return unblock(tx, nil, waiting)
	})
}

// waitsForRun reports whether a run of a job may be open, and no person has allowed the job to run
// beside it.
func waitsForRun(tx runner, id sluice.ID) (bool, error) {
	open, err := list(tx, scanOne[bool], strayOpenSQL, id[:])
	return err == nil && open[0], err
}

// markStrays marks the orphan runs of a job by a statement, and audits each new mark.
func markStrays(tx runner, id sluice.ID, statement string, event sluice.Event, act sluice.Act) error {
	entries, err := list(tx, func(rows *sql.Rows) (sluice.AuditEntry, error) {
		e := sluice.AuditEntry{Object: audit.ObjectJob, Event: event, JobID: id, Actor: act.By, Reason: act.Reason, ActID: act.ID}
		var engine, ref string
		err := rows.Scan(&e.Name, &e.Generation, &engine, &ref)
		if err == nil {
			e.After, err = json.Marshal(map[string]string{"engine": engine, "ref": ref})
		}
		return e, err
	}, statement, id[:])
	for _, entry := range entries {
		if err == nil {
			err = tell(tx, entry)
		}
	}
	return err
}

// Terminate marks the orphan runs of jobs, so that upkeep ends them by force.
func (s *Store) Terminate(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, audit.EventTerminate, ids, act, func(tx runner, id sluice.ID) (bool, error) {
		runs, err := list(tx, scanStray, strayOfSQL, id[:], 1)
		if err != nil || len(runs) == 0 {
			return false, err
		}
		return true, markStrays(tx, id, strayTerminateSQL, audit.EventTerminate, act)
	})
}

// AppendAudit adds entries to the audit that record no move.
func (s *Store) AppendAudit(ctx context.Context, entries []sluice.AuditEntry) error {
	for _, entry := range entries {
		if err := entry.CheckAppended(); err != nil {
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
