// Package progress tells how far running jobs have come.
//
// Begin with [Of]. Handlers report with the method Progress of worker.Job, and Waiter.Follow of package await hears of each
// report. [Store] is the port that SQLite, PostgreSQL and memory implement.
//
// Read next: docs/guide/progress.md.
package progress

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// MaxMessageBytes is the most bytes of a report's message.
const MaxMessageBytes = 200

// Report is how far a running job has come, as its handler said last.
type Report struct {
	// JobID names the job.
	JobID sluice.ID `json:"job_id"`
	// Token proves the claim to the store. Lookups leave it out.
	Token sluice.Token `json:"-"`
	// Fraction is the part that is done, from 0 to 1.
	Fraction float64 `json:"fraction"`
	// Message is one line for people, at most [MaxMessageBytes]. Default: none.
	Message string `json:"message,omitempty"`
	// At is when the report was stored, by the store's clock. The store sets it.
	At time.Time `json:"at"`
}

// New returns the report of a claimed job. A fraction outside 0 to 1 becomes the nearest of the two, and one that is no
// number becomes 0. A message of several lines becomes one, and a longer one is cut.
func New(id sluice.ID, token sluice.Token, fraction float64, message string) Report {
	if math.IsNaN(fraction) {
		fraction = 0
	}
	return Report{JobID: id, Token: token, Fraction: min(max(fraction, 0), 1), Message: sluice.Brief(message)}
}

// String returns the report for people, such as `40 %, page 3 of 8`.
func (r Report) String() string {
	return strings.TrimSuffix(fmt.Sprintf("%s %%, %s", feature.Percent(0, r.Fraction), r.Message), ", ")
}

// Of returns the last reports of jobs that run now. It leaves out jobs that do not run, and jobs whose attempt has not
// reported. A report is stored within about a second.
func Of(ctx context.Context, store sluice.Store, ids ...sluice.ID) (map[sluice.ID]Report, error) {
	found := make(map[sluice.ID]Report)
	if len(ids) == 0 {
		return found, nil
	}
	reports, err := Given(store).Progress(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("progress of %d jobs: %w", len(ids), err)
	}
	for _, r := range reports {
		found[r.JobID] = r
	}
	return found, nil
}
