package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"

	"github.com/sluice-queue/sluice"
)

// fileRun is the id of a run of a file of jobs; its last 4 bytes are zero. The jobs of the lines have ids that follow from it
// and from their numbers. So a line that is sent again is found, whatever became of the process or the answer before, and
// jobs of one run stand in the order of its lines.
type fileRun sluice.ID

// maxLines is how many lines have an id of their own.
const maxLines = math.MaxUint32

func newFileRun() fileRun {
	run := fileRun(sluice.NewID())
	clear(run[12:])
	return run
}

// parseFileRun reads the id of a run, as it was told.
func parseFileRun(text string) (fileRun, error) {
	id, err := sluice.ParseID(text)
	if err != nil {
		return fileRun{}, usagef("--resume: %w", err)
	}
	if !bytes.Equal(id[12:], make([]byte, 4)) || id.IsZero() {
		return fileRun{}, usagef("--resume %s is not the id of a run, which ends with 00000000", id)
	}
	return fileRun(id), nil
}

// id gives the id of the job of a line, counted from 1.
func (r fileRun) id(line int) sluice.ID {
	id := sluice.ID(r)
	binary.BigEndian.PutUint32(id[12:], uint32(line))
	return id
}

// verify makes sure, before a batch of a resumed run is sent, that its last line is the one that the run has stored, if it
// has: lines that were put in, taken out or ordered anew would be taken for stored ones, or stored twice.
func (l *lineEnqueuer) verify(ctx context.Context) error {
	for i := len(l.batch) - 1; i >= 0; i-- {
		job := l.batch[i]
		if job.ID != l.run.id(l.numbers[i]) || job.OnDuplicate == sluice.Coalesce { // which may have a newer payload
			continue
		}
		stored, err := l.client.Job(ctx, job.ID)
		switch {
		case errors.Is(err, sluice.ErrNotFound):
			return nil
		case err != nil:
			return err
		case stored.Queue != job.Queue || !bytes.Equal(stored.Payload, job.Payload):
			return usagef("line %d is not the one that this run has stored as job %s: the lines have changed, or it is another file", l.numbers[i], job.ID)
		}
		return nil
	}
	return nil
}
