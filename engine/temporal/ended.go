package temporal

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice/engine"
)

// Ended lists ended runs, 1,000 per call; completed runs cost no further call. The others are described to read
// their failures. A described run may also turn out to go on: a run that was reset is listed as terminated or
// failed. See [engine.Engine].
func (e *Engine) Ended(ctx context.Context, target engine.Target, since time.Time, next []byte) (engine.Page, error) {
	p, err := e.placeOf(target)
	if err != nil {
		return engine.Page{}, err
	}
	var rows []found
	err = patiently(ctx, func() (err error) {
		rows, next, err = e.list(ctx, p, endedQuery(p, since), next)
		return err
	})
	if err != nil {
		return engine.Page{}, err
	}
	runs, err := e.outcomes(ctx, p, rows)
	if err != nil {
		return engine.Page{}, err
	}
	page := engine.Page{}
	for _, run := range runs {
		if run.State.Over() {
			page.Runs = append(page.Runs, run)
		}
	}
	if len(next) > 0 {
		page.Next = next
	}
	return page, nil
}

// endedQuery returns the query for a place's runs that ended since an instant. Names that a list query cannot
// hold are left out; outcomes filters them.
func endedQuery(p place, since time.Time) string {
	query := "ExecutionStatus != 'ContinuedAsNew' AND CloseTime >= '" + since.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano) + "'"
	if listable(p.Type) {
		query += " AND WorkflowType = '" + p.Type + "'"
	}
	if listable(p.TaskQueue) {
		query += " AND TaskQueue = '" + p.TaskQueue + "'"
	}
	return query
}

// outcomes returns the outcomes of listed runs, without runs that belong to no job.
func (e *Engine) outcomes(ctx context.Context, p place, rows []found) ([]engine.Outcome, error) {
	var runs []engine.Outcome
	var asked []found
	for _, row := range rows {
		switch {
		case row.job.IsZero() || row.info.GetType().GetName() != p.Type || row.info.GetTaskQueue() != p.TaskQueue:
		case row.state == engine.Completed && !p.Results:
			runs = append(runs, row.outcome())
		default:
			asked = append(asked, row)
		}
	}
	rest := make([]engine.Outcome, len(asked))
	errs := e.looks.each(ctx, len(asked), func(ctx context.Context, i int) error {
		return patiently(ctx, func() (err error) {
			rest[i], err = e.confirmed(ctx, p, asked[i])
			return err
		})
	})
	for i, err := range errs {
		if err == nil {
			runs = append(runs, rest[i])
		}
	}
	if len(runs) > 0 { // an unreadable run holds up no other: Outcomes finds it in time
		return runs, nil
	}
	return nil, first(errs)
}

// confirmed returns the outcome of the last run of a ref that is listed as ended.
func (e *Engine) confirmed(ctx context.Context, p place, row found) (engine.Outcome, error) {
	if row.state == engine.Completed {
		return e.told(ctx, p, row)
	}
	last, err := e.describe(ctx, p, row.ref)
	if err != nil {
		return engine.Outcome{}, err
	}
	if last.job == row.job { // else it is deleted, or another workflow used the ref afterwards: the listed row holds
		row = last
	}
	return e.told(ctx, p, row)
}
