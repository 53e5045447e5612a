package postgres

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/history"
)

//go:embed sql/list_live.sql
var listLiveFile string

var listLiveSQL = jobColumns.In(listLiveFile)

//go:embed sql/list_done.sql
var listDoneFile string

var listDoneSQL = jobColumns.In(listDoneFile)

//go:embed sql/list_dead.sql
var listDeadFile string

var listDeadSQL = jobColumns.In(listDeadFile)

//go:embed sql/list_tenant.sql
var listTenantFile string

var listTenantSQL = jobColumns.In(listTenantFile)

//go:embed sql/list_key.sql
var listKeyFile string

var listKeySQL = jobColumns.In(listKeyFile)

//go:embed sql/list_batch.sql
var listBatchFile string

var listBatchSQL = jobColumns.In(listBatchFile)

//go:embed sql/list_batch_floor.sql
var listBatchFloorSQL string

//go:embed sql/list_floor.sql
var listFloorSQL string

// listSQL holds the statement for each way to find jobs.
var listSQL = map[history.Way]string{
	history.ByKey: listKeySQL, history.ByBatch: listBatchSQL, history.ByTenant: listTenantSQL, history.Unfinished: listLiveSQL, history.Finished: listDoneSQL,
	history.Dead: listDeadSQL,
}

// Jobs lists jobs, newest first.
func (s *Store) Jobs(ctx context.Context, filter sluice.JobFilter) (sluice.Page, error) {
	var labels *string
	if len(filter.Labels) > 0 {
		text, err := json.Marshal(filter.Labels)
		if err != nil {
			return sluice.Page{}, err
		}
		labels = nullText(string(text))
	}
	before, err := filter.EndOfPage()
	if err != nil {
		return sluice.Page{}, err
	}
	var found []sluice.Job
	var floor sluice.ID
	err = s.call(ctx, "list jobs", func(ctx context.Context, _ bool) error {
		return s.pipelined(ctx, func(tx *pipeline) (err error) {
			found = nil
			if floor, err = listFloor(ctx, tx, filter, before); err != nil {
				return err
			}
			for _, part := range history.PartsOf(filter) {
				arguments := []any{
					filter.Queue, filter.Tenant, filter.Key, states(part.States), labels, nullUUID(before), filter.Limit + 1,
					filter.MinAttempts, filter.MinRecoveries,
				}
				switch part.Way {
				case history.Unfinished, history.Finished:
					arguments = append(arguments, nullUUID(floor))
				case history.ByBatch:
					arguments = append(arguments, nullUUID(floor), nullUUID(filter.Batch))
				}
				jobs, err := list(ctx, tx, scanJob, listSQL[part.Way], arguments...)
				if err != nil {
					return err
				}
				found = append(found, jobs...)
			}
			return nil
		})
	})
	if err != nil {
		return sluice.Page{}, err
	}
	return sluice.NewestPage(found, filter.Limit, floor), nil
}

// listFloor returns the job at which a search by labels alone or by a batch ends, so that a long history does not make a page
// slower. Zero: the search goes to the end.
func listFloor(ctx context.Context, tx *pipeline, filter sluice.JobFilter, before sluice.ID) (sluice.ID, error) {
	if !filter.Batch.IsZero() {
		floors, err := list(ctx, tx, pgx.RowTo[pgtype.UUID], listBatchFloorSQL, nullUUID(filter.Batch), nullUUID(before), history.ListLimit)
		if err != nil || len(floors) == 0 {
			return sluice.ID{}, err
		}
		return idOf(floors[0]), nil
	}
	if !history.Bounded(filter) {
		return sluice.ID{}, nil
	}
	ends, err := list(ctx, tx, func(row pgx.CollectableRow) (sluice.ID, error) {
		var live, done pgtype.UUID
		err := row.Scan(&live, &done)
		floor := idOf(live)
		if other := idOf(done); bytes.Compare(other[:], floor[:]) > 0 {
			floor = other
		}
		return floor, err
	}, listFloorSQL, nullUUID(before), history.ListLimit)
	if err != nil {
		return sluice.ID{}, err
	}
	return ends[0], nil
}
