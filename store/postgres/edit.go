package postgres

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/edit"
)

//go:embed sql/edit.sql
var editSQL string

//go:embed sql/key_lock.sql
var keyLockSQL string

// EditJob changes a queued job.
func (s *Store) EditJob(ctx context.Context, e edit.Edit, act sluice.Act) error {
	errs, err := s.act(ctx, audit.EventEdit, []sluice.ID{e.JobID}, act, func(ctx context.Context, tx pgx.Tx, sorted []sluice.ID, refused map[sluice.ID]error) (out endings, err error) {
		if len(sorted) == 0 { // the act was sent again
			return out, nil
		}
		if e.Tenant != nil {
			if err := exec(ctx, tx, keyLockSQL, [16]byte(e.JobID)); err != nil {
				return out, err
			}
		}
		locked, err := list(ctx, tx, pgx.RowTo[pgtype.UUID], lockWaitingSQL, [16]byte(e.JobID))
		if err != nil || len(locked) == 0 {
			return out, err
		}
		found, err := list(ctx, tx, scanJobAndKey, jobSQL, [16]byte(e.JobID))
		if err != nil || len(found) == 0 {
			return out, err
		}
		if edit.VersionOf(found[0]) != e.Version {
			refused[e.JobID] = sluice.ErrConflict
			return out, nil
		}
		out.rows, err = editJob(ctx, tx, found[0], e, act)
		return out, err
	})
	if err != nil {
		return err
	}
	return errs[0]
}

// editJob writes the change of a job whose row is locked.
func editJob(ctx context.Context, tx pgx.Tx, job sluice.Job, e edit.Edit, act sluice.Act) ([]moved, error) {
	before := string(e.AuditText(job))
	e.Apply(&job)
	labels, err := labelsText(sluice.Insert{NewJob: sluice.NewJob{EnqueueOptions: sluice.EnqueueOptions{Labels: job.Labels}}})
	if err != nil {
		return nil, err
	}
	return list(ctx, tx, scanMoved, editSQL, [16]byte(job.ID), job.Tenant, int16(job.Priority), job.DueAt, []byte(job.Payload), labels,
		act.By, act.Reason, nullUUID(act.ID), before, string(e.AuditText(job)), job.Timeout.Milliseconds(), job.LimitKey, job.Cost)
}
