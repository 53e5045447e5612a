package checkup

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice/health"
)

// Moved reports that the store was moved, or is being moved. The mark is what package move keeps in the store as JSON.
func (r *Report) Moved(mark string) error {
	var m struct {
		To   string
		At   time.Time
		Done bool
	}
	if err := json.Unmarshal([]byte(mark), &m); err != nil {
		return fmt.Errorf("read the mark of the move: %w", err)
	}
	if m.Done {
		r.Find(health.SeverityError, "moved", "the store was moved to "+m.To+" on "+m.At.UTC().Format(time.DateTime)+" UTC",
			"its jobs are there now; this one refuses enqueues and claims, so that no job runs twice", "give programs and commands the address of the new store, and keep this one as a record or delete it")
		return nil
	}
	r.Find(health.SeverityError, "moved", "a move to "+m.To+" began on "+m.At.UTC().Format(time.DateTime)+" UTC and has not ended",
		"until then, nobody can enqueue or claim jobs here or there", "run the same `sluice move` again: it goes on; or give the move up with `sluice move --reopen`")
	return nil
}
