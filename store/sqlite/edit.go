package sqlite

import (
	"context"
	_ "embed"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/edit"
)

//go:embed sql/edit_live.sql
var editLiveSQL string

//go:embed sql/edit_job.sql
var editJobSQL string

// EditJob changes a queued job.
func (s *Store) EditJob(ctx context.Context, e edit.Edit, act sluice.Act) error {
	var errs error
	err := s.write(ctx, "edit", func(tx runner, _ bool) (err error) {
		errs, err = actOne(tx, audit.EventEdit, e.JobID, act, func(tx runner, id sluice.ID) (bool, error) { return editJob(tx, id, e, act) })
		return err
	})
	if err != nil {
		return err
	}
	return errs
}

// editJob changes a job. Done is false if the job does not wait.
func editJob(tx runner, id sluice.ID, e edit.Edit, act sluice.Act) (done bool, err error) {
	at, err := stand(tx, id)
	if err != nil || at.state != sluice.StateQueued {
		return false, err
	}
	found, err := list(tx, scanJobAndKey, jobSQL, id[:])
	if err != nil || len(found) == 0 {
		return false, err
	}
	job := found[0].job
	if edit.VersionOf(job) != e.Version {
		return false, sluice.ErrConflict
	}
	entry := moveEntry(id, at.queue, at.generation, audit.EventEdit, at.state, act)
	entry.To, entry.Before = at.state, e.AuditText(job)
	e.Apply(&job)
	entry.After = e.AuditText(job)
	var labels any
	if len(job.Labels) > 0 {
		if labels, err = jsonOf(job.Labels); err != nil {
			return false, err
		}
	}
	if _, err := tx.exec(editJobSQL, at.seq, job.Tenant, job.Priority, []byte(job.Payload), labels, nullMillis(job.Timeout), nullText(job.LimitKey), nullInt(job.Cost)); err != nil {
		return false, err
	}
	if _, err := tx.exec(editLiveSQL, at.seq, job.Tenant, job.Priority, job.DueAt.UnixMicro(), nullText(job.LimitKey), max(job.Cost, 1)); err != nil {
		return false, err
	}
	tx.signal(sluice.Signal{Queue: at.queue})
	return true, tell(tx, entry)
}
