package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
)

// fileRun is the id of a run of a file; its last 4 bytes are zero. A line's job id is this id plus the line number. So
// a resent line is found, whatever happened to the process or the answer. A run's jobs sort in line order.
type fileRun sluice.ID

// maxLines is the most lines of a run: each has its own id, and an int of 32 bits counts one more.
const maxLines = math.MaxInt32 - 1

func newFileRun() fileRun {
	run := fileRun(sluice.NewID())
	clear(run[12:])
	return run
}

// parseFileRun reads the id of a run.
func parseFileRun(text string) (fileRun, error) {
	id, err := parseID(text)
	if err != nil {
		return fileRun{}, usagef("--resume: %w", err)
	}
	if !bytes.Equal(id[12:], make([]byte, 4)) || id.IsZero() {
		return fileRun{}, usagef("--resume %s is not the id of a run, which ends with 00000000", id)
	}
	return fileRun(id), nil
}

// id returns the job id of a line, counted from 1.
func (r fileRun) id(line int) sluice.ID {
	id := sluice.ID(r)
	binary.BigEndian.PutUint32(id[12:], uint32(line))
	return id
}

// errForgotten says that the lines of a run may have been stored and deleted.
var errForgotten = errors.New("lines that it stored may have been deleted since")

// remembered refuses lines of a run that began so long ago that upkeep may have deleted jobs of it. They would be
// stored again, and run twice. With --skip, a person has decided. An id that a person made up has no time.
func (l *lineEnqueuer) remembered(ctx context.Context) error {
	if l.skip > 0 || l.run[6]>>4 != 7 {
		return nil
	}
	for _, job := range l.batch {
		if l.checked[job.Queue] {
			continue
		}
		q, err := l.client.Queue(ctx, job.Queue)
		if err != nil && !errors.Is(err, sluice.ErrNotFound) {
			return err
		}
		age := q.Now.Sub(sluice.ID(l.run).Time())
		for _, outcome := range []sluice.State{sluice.StateCompleted, sluice.StateCancelled, sluice.StateDead} {
			if keep := q.Settings.Keep(outcome); keep > 0 && age > keep-keep/10 { // clocks differ
				return codedError{
					fmt.Errorf("the run began %s ago, and queue %q keeps %s jobs for %s: %w", age.Round(time.Second), job.Queue, outcome, sluice.FormatDuration(keep), errForgotten),
					exitRefused, "find out how many lines it has stored, and add --skip with that number: the lines after it are stored",
				}
			}
		}
		l.checked[job.Queue] = true
	}
	return nil
}

// verify runs before a resumed run sends a batch. The batch's last line that nobody has edited, if stored, must be unchanged. Otherwise
// inserted, removed or reordered lines would pass for stored ones, or be stored twice.
func (l *lineEnqueuer) verify(ctx context.Context) error {
	if err := l.remembered(ctx); err != nil {
		return err
	}
	for i := len(l.batch) - 1; i >= 0; i-- {
		job := l.batch[i]
		if job.ID != l.run.id(l.numbers[i]) || job.OnDuplicate == sluice.Coalesce || job.OnDuplicate == sluice.Debounce { // may have a newer payload
			continue
		}
		stored, err := l.client.Job(ctx, job.ID)
		switch {
		case errors.Is(err, sluice.ErrNotFound):
			return nil
		case err != nil:
			return err
		case stored.Queue == job.Queue && compact(stored.Payload) == compact(job.Payload):
			return nil
		case stored.Queue == job.Queue && edited(ctx, l.client, job.ID): // the line before it tells
		default:
			return usagef("line %d is not the one that this run has stored as job %s: the lines have changed, or it is another file", l.numbers[i], job.ID)
		}
	}
	return nil
}

// edited reports whether somebody has edited a job, so that its payload may be another one since. False also for a caller who may
// not read the audit.
func edited(ctx context.Context, client *sluice.Client, id sluice.ID) bool {
	entries, err := client.Audit(ctx, sluice.AuditFilter{JobID: id, Event: audit.EventEdit, Limit: 1})
	return err == nil && len(entries) > 0
}
