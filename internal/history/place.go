// Package history says where a walk through the finished jobs has come.
package history

import (
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// Place is where a walk stands in the order of queue, outcome and end. The zero value is the front.
type Place struct {
	Queue   string
	Outcome sluice.State
	// EndedAt is when the last job before it ended; zero: it stands before the first job of the queue and outcome.
	EndedAt time.Time
}

// String is the mark of a place, which Parse reads. It is never empty.
func (p Place) String() string {
	ended := int64(0)
	if !p.EndedAt.IsZero() {
		ended = p.EndedAt.UnixMicro()
	}
	return strings.Join([]string{p.Queue, string(p.Outcome), strconv.FormatInt(ended, 10)}, "/")
}

// Parse reads the mark of a place; an empty one is the front. Any other text is an ErrInvalid.
func Parse(mark string) (Place, error) {
	if mark == "" {
		return Place{}, nil
	}
	parts := strings.Split(mark, "/") // names of queues have no slash
	if len(parts) != 3 {
		return Place{}, sluice.BadMark(mark)
	}
	micros, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return Place{}, sluice.BadMark(mark)
	}
	p := Place{Queue: parts[0], Outcome: sluice.State(parts[1])}
	if micros != 0 {
		p.EndedAt = time.UnixMicro(micros).UTC()
	}
	return p, nil
}
