package postgres

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"math"

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

// listWalk is the part of all jobs that a page goes through. A zero bound is none.
type listWalk struct{ from, below sluice.ID }

// listWalkOf returns the walk of a filter's page that begins at the end of the page before, and ends with the last job to look at.
func listWalkOf(filter sluice.JobFilter, begin, last sluice.ID) listWalk {
	if filter.OldestFirst {
		return listWalk{from: idAfter(begin), below: idAfter(last)}
	}
	return listWalk{from: last, below: begin}
}

// idAfter returns the next id in their order. Zero: zero, which is no bound.
func idAfter(id sluice.ID) sluice.ID {
	if id.IsZero() {
		return id
	}
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			break
		}
	}
	return id
}

// Jobs lists jobs.
func (s *Store) Jobs(ctx context.Context, filter sluice.JobFilter) (sluice.Page, error) {
	var labels *string
	if len(filter.Labels) > 0 {
		text, err := json.Marshal(filter.Labels)
		if err != nil {
			return sluice.Page{}, err
		}
		labels = nullText(string(text))
	}
	begin, err := filter.EndOfPage()
	if err != nil {
		return sluice.Page{}, err
	}
	var found []sluice.Job
	var floor sluice.ID
	err = s.call(ctx, "list jobs", func(ctx context.Context, _ bool) error {
		return s.pipelined(ctx, func(tx *pipeline) (err error) {
			found = nil
			if floor, err = listFloor(ctx, tx, filter, begin); err != nil {
				return err
			}
			walk := listWalkOf(filter, begin, floor)
			for _, part := range history.PartsOf(filter) {
				arguments := []any{
					filter.Queue, filter.Tenant, filter.Key, states(part.States), labels, nullUUID(walk.below), filter.Limit + 1,
					min(filter.MinAttempts, math.MaxInt32), min(filter.MinRecoveries, math.MaxInt32), nullUUID(walk.from),
				}
				if part.Way == history.ByBatch {
					arguments = append(arguments, nullUUID(filter.Batch))
				}
				jobs, err := list(ctx, tx, scanJob, history.InOrder(filter, listSQL[part.Way]), arguments...)
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
	return filter.Page(found, floor), nil
}

// listFloor returns the job at which a search by labels alone or by a batch ends, so that a long history does not make a page
// slower. Zero: the search goes to the end.
func listFloor(ctx context.Context, tx *pipeline, filter sluice.JobFilter, begin sluice.ID) (sluice.ID, error) {
	walk := listWalkOf(filter, begin, sluice.ID{})
	if !filter.Batch.IsZero() {
		floors, err := list(ctx, tx, pgx.RowTo[pgtype.UUID], history.InOrder(filter, listBatchFloorSQL),
			nullUUID(filter.Batch), nullUUID(walk.below), history.ListLimit, nullUUID(walk.from))
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
		floor, other := idOf(live), idOf(done)
		if floor.IsZero() || !other.IsZero() && filter.OldestFirst == (bytes.Compare(other[:], floor[:]) < 0) {
			floor = other
		}
		return floor, err
	}, history.InOrder(filter, listFloorSQL), nullUUID(walk.below), history.ListLimit, nullUUID(walk.from))
	if err != nil {
		return sluice.ID{}, err
	}
	return ends[0], nil
}
