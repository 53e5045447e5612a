package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	_ "embed"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/internal/storing"
)

//go:embed sql/hold.sql
var holdSQL string

//go:embed sql/hold_put.sql
var holdPutSQL string

//go:embed sql/hold_drop.sql
var holdDropSQL string

//go:embed sql/hold_of.sql
var holdOfSQL string

//go:embed sql/hold_release.sql
var holdReleaseSQL string

//go:embed sql/holds.sql
var holdsSQL string

//go:embed sql/holds_queue.sql
var holdsQueueSQL string

//go:embed sql/holds_jobs.sql
var holdsJobsSQL string

// jobHold is the hold of a job.
type jobHold struct {
	hold.Held
	behind *int64 // the number of the job that it waited for when the hold began
}

func scanHold(rows *sql.Rows) (jobHold, error) {
	var h jobHold
	var id []byte
	var at int64
	err := rows.Scan(&id, &h.Queue, &h.Reason, &h.By, &at, &h.behind)
	h.JobID, h.At = idOf(id), timeOf(&at)
	return h, err
}

// Hold holds queued jobs.
func (s *Store) Hold(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, audit.EventHold, ids, act, func(tx runner, id sluice.ID) (bool, error) {
		rows, err := heldRows(tx, []sluice.ID{id})
		row, lives := rows[id]
		if err != nil || !lives || row.state != sluice.StateQueued {
			return false, err
		}
		behind := row.blockedBy
		if behind != nil && *behind == row.seq {
			behind = nil
		}
		put, err := putHold(tx, row.id, row.queue, row.generation, act, behind)
		if err != nil || !put {
			return false, err
		}
		if _, err := tx.exec(holdSQL, row.seq); err != nil {
			return false, err
		}
		return true, unblock(tx, []int64{row.seq}, nil) // those before it in its order need not wait for it
	})
}

// putHold notes and audits the hold of a job. Behind is the number of the job that it waits for otherwise, or nil. Put is
// false if somebody holds the job already.
func putHold(tx runner, id sluice.ID, queue string, generation int, act sluice.Act, behind *int64) (put bool, err error) {
	n, err := affected(tx.exec(holdPutSQL, id[:], queue, act.Reason, act.By, now(), behind))
	if err != nil || n == 0 {
		return false, err
	}
	entry := moveEntry(id, queue, generation, audit.EventHold, sluice.StateQueued, act)
	entry.To = sluice.StateQueued
	return true, tell(tx, entry)
}

// Release ends the holds of jobs.
func (s *Store) Release(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, audit.EventReleaseHold, ids, act, func(tx runner, id sluice.ID) (bool, error) {
		held, is, err := dropHold(tx, id)
		if err != nil || !is {
			return false, err
		}
		at, err := stand(tx, id)
		if err != nil {
			return false, err
		}
		entry := moveEntry(id, at.queue, at.generation, audit.EventReleaseHold, at.state, act)
		entry.To, entry.Before = at.state, storing.HoldText(held.Reason, held.By, held.At)
		if err := tell(tx, entry); err != nil {
			return false, err
		}
		if _, err := tx.exec(holdReleaseSQL, at.seq, held.behind); err != nil {
			return false, err
		}
		return true, unblock(tx, []int64{at.seq}, []int64{at.seq})
	})
}

// dropHold deletes the hold of a job. False: nobody held the job.
func dropHold(tx runner, id sluice.ID) (jobHold, bool, error) {
	dropped, err := list(tx, scanHold, holdDropSQL, id[:])
	if err != nil || len(dropped) == 0 {
		return jobHold{}, false, err
	}
	return dropped[0], true, nil
}

// waitsForItself reports whether somebody holds a job, or a run of it may be open that it must not run beside.
func waitsForItself(tx runner, id sluice.ID) (bool, error) {
	held, err := list(tx, scanOne[bool], holdOfSQL, id[:])
	if err != nil || held[0] {
		return err == nil, err
	}
	return waitsForRun(tx, id)
}

// Holds lists holds, the newest job first.
func (s *Store) Holds(ctx context.Context, filter hold.Filter) ([]hold.Held, error) {
	before := bytes.Repeat([]byte{0xff}, len(filter.Before)+1) // after every ID
	if !filter.Before.IsZero() {
		before = filter.Before[:]
	}
	text, args := holdsSQL, []any{before, filter.Limit}
	switch {
	case filter.Jobs != nil:
		text, args = holdsJobsSQL, append([]any{idList(filter.Jobs)}, args...)
	case filter.Queue != "":
		text, args = holdsQueueSQL, append([]any{filter.Queue}, args...)
	}
	var out []hold.Held
	err := s.read(ctx, "list holds", func(tx runner) error {
		found, err := list(tx, scanHold, text, args...)
		out = nil
		for _, h := range found {
			if filter.Queue == "" || h.Queue == filter.Queue {
				out = append(out, h.Held)
			}
		}
		return err
	})
	return out, err
}

// holdNew holds a job that is being enqueued. Behind is the number of the job that it waits for otherwise, or nil.
func holdNew(tx runner, j *sluice.Insert, behind any) error {
	var seq *int64
	if n, waits := behind.(int64); waits {
		seq = &n
	}
	_, err := putHold(tx, j.ID, j.Queue, 1, sluice.Act{By: hold.ByEnqueue, Reason: j.Hold}, seq)
	return err
}
