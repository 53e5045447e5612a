// Package history divides long histories of jobs for the SQL stores. A walk through the finished
// jobs needs a cursor, and a page of jobs needs the right index.
//
// Begin with [Place], the cursor of a walk such as Store.Prune, and [PartsOf], which splits a page
// of Store.Jobs by index.
//
// Read next: prune.go and list.go of packages sqlite and postgres.
package history

import (
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// Place is the position of a walk in the order of queue, outcome and end. The zero value is the
// front.
type Place struct {
	Queue   string
	Outcome sluice.State
	// EndedAt is the end of the last job before the position. Zero: before the first job of the
	// queue and outcome.
	EndedAt time.Time
}

// String returns the cursor of a place, which [Parse] reads. The cursor is never empty.
func (p Place) String() string {
	ended := int64(0)
	if !p.EndedAt.IsZero() {
		ended = p.EndedAt.UnixMicro()
	}
	return strings.Join([]string{p.Queue, string(p.Outcome), strconv.FormatInt(ended, 10)}, "/")
}

// Parse parses the cursor of a place. An empty one is the front. Any other text is a
// [sluice.ErrInvalid].
func Parse(mark string) (Place, error) {
	if mark == "" {
		return Place{}, nil
	}
	parts := strings.Split(mark, "/") // names of queues have no slash
	if len(parts) != 3 {
		return Place{}, sluice.BadCursor(mark)
	}
	micros, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return Place{}, sluice.BadCursor(mark)
	}
	p := Place{Queue: parts[0], Outcome: sluice.State(parts[1])}
	if micros != 0 {
		p.EndedAt = time.UnixMicro(micros).UTC()
	}
	return p, nil
}
