package console

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice/audit"
)

// shownCycles is how many dispatch cycles a queue's page shows.
const shownCycles = 20

// cycleRow is a dispatch cycle of a queue with an engine.
type cycleRow struct {
	auditEntry
	cycle
}

// cycle counts what became of the jobs of a cycle, as a dispatcher.Cycle does.
type cycle struct {
	Claimed    int           `json:"claimed"`
	Dispatched int           `json:"dispatched"`
	Buried     int           `json:"buried"`
	Released   int           `json:"released"`
	Held       int           `json:"held"`
	Took       time.Duration `json:"took"`
	// Nil: an older dispatcher did not measure the parts.
	Claiming *time.Duration `json:"claiming"`
	Starting *time.Duration `json:"starting"`
	Settling *time.Duration `json:"settling"`
}

// cycles reads the last dispatch cycles of a queue. The audit keeps each cycle that claimed
// jobs. Callers with bounds read the audit of single jobs alone.
func (v *visit) cycles(ctx context.Context, queue string) (rows []cycleRow, err error) {
	if v.viewer.bounded() {
		return nil, nil
	}
	v.cli("sluice audit --object queue --name " + quoted(queue) + " --event " + quoted(string(audit.EventBatch)))
	entries, err := v.entries(ctx, seriesFor, "/audit", url.Values{
		"object": {string(audit.ObjectQueue)}, "name": {queue}, "event": {string(audit.EventBatch)}, "limit": {strconv.Itoa(shownCycles)},
	})
	for _, e := range entries {
		row := cycleRow{auditEntry: e}
		if json.Unmarshal(e.After, &row.cycle) == nil {
			rows = append(rows, row)
		}
	}
	return rows, err
}
