package cli

import (
	"context"
	"errors"

	"github.com/sluice-queue/sluice"
	jobprogress "github.com/sluice-queue/sluice/progress"
)

// withProgress adds a column with how far jobs have come, if some of them have reported that.
func withProgress(ctx context.Context, store sluice.Store, jobs []sluice.Job, columns []column[sluice.Job]) ([]column[sluice.Job], error) {
	var running []sluice.ID
	for _, j := range jobs {
		if j.State == sluice.StateClaimed {
			running = append(running, j.ID)
		}
	}
	reports, err := jobprogress.Of(ctx, store, running...)
	if err != nil && !errors.Is(err, sluice.ErrNotFound) || len(reports) == 0 {
		return columns, err
	}
	return append(columns, column[sluice.Job]{"PROGRESS", func(j sluice.Job) string {
		if report, said := reports[j.ID]; said {
			return report.String()
		}
		return "-"
	}, false}), nil
}
