package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"math"
	"slices"
	"strconv"
	"strings"

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
	history.ByKey: listKeySQL, history.ByTenant: listTenantSQL, history.Unfinished: listLiveSQL, history.Finished: listDoneSQL,
	history.Dead: listDeadSQL,
}

// Jobs lists jobs, newest arrival first.
func (s *Store) Jobs(ctx context.Context, filter sluice.JobFilter) (sluice.Page, error) {
	labels := "{}"
	if len(filter.Labels) > 0 {
		var err error
		if labels, err = jsonOf(filter.Labels); err != nil {
			return sluice.Page{}, err
		}
	}
	var rows []listed
	var floor listed
	err := s.read(ctx, "list jobs", func(tx runner) error {
		rows = nil
		before, err := pageEnd(tx, filter)
		if err != nil {
			return err
		}
		if !filter.Batch.IsZero() {
			rows, floor, err = listBatches(tx, filter, labels, before)
			return err
		}
		if floor, err = listFloor(tx, filter, before); err != nil {
			return err
		}
		for _, part := range history.PartsOf(filter) {
			states, err := jsonOf(part.States)
			if err != nil {
				return err
			}
			arguments := []any{filter.Queue, filter.Tenant, filter.Key, states, labels, before, filter.Limit + 1, filter.MinAttempts, filter.MinRecoveries}
			if part.Way == history.Unfinished || part.Way == history.Finished {
				arguments = append(arguments, floor.seq)
			}
			found, err := list(tx, scanJob, listSQL[part.Way], arguments...)
			if err != nil {
				return err
			}
			rows = append(rows, found...)
		}
		return nil
	})
	for i := range rows {
		rows[i].job.LeaseUntil = s.steady.onWall(rows[i].job.LeaseUntil)
	}
	return pageOf(rows, filter.Limit, floor), err
}

// seqCursor is the prefix of a page's cursor.
const seqCursor = "seq:"

// pageEnd returns the number before which a list continues. Without a cursor or an id, the list
// begins at the newest job.
func pageEnd(tx runner, filter sluice.JobFilter) (int64, error) {
	if filter.Cursor != "" {
		text, known := strings.CutPrefix(filter.Cursor, seqCursor)
		seq, err := strconv.ParseInt(text, 10, 64)
		if !known || err != nil {
			return 0, sluice.BadCursor(filter.Cursor)
		}
		return seq, nil
	}
	if filter.Before.IsZero() {
		return math.MaxInt64, nil
	}
	return pageStart(tx, filter.Before)
}

// pageOf makes a page. Floor is the job at which the search ended; zero: the search reached the
// end.
func pageOf(rows []listed, limit int, floor listed) sluice.Page {
	slices.SortFunc(rows, func(a, b listed) int { return cmp.Compare(b.seq, a.seq) })
	var page sluice.Page
	last := floor
	if len(rows) > limit {
		rows, last = rows[:limit], rows[limit-1]
	}
	for _, row := range rows {
		page.Jobs = append(page.Jobs, row.job)
	}
	if last.seq != 0 {
		page.Next, page.Cursor = last.job.ID, seqCursor+strconv.FormatInt(last.seq, 10)
	}
	return page
}

// listFloor returns the job at which a search by labels alone ends, so that a long history does not
// make a page slower. Zero: the search goes to the end.
func listFloor(tx runner, filter sluice.JobFilter, before int64) (floor listed, err error) {
	if !history.Bounded(filter) {
		return floor, nil
	}
	found, err := list(tx, scanFloor, listFloorSQL, before, history.ListLimit)
	if err != nil || len(found) == 0 {
		return floor, err
	}
	return found[0], nil
}

func scanFloor(rows *sql.Rows) (l listed, err error) {
	var id []byte
	err = rows.Scan(&l.seq, &id)
	l.job.ID = idOf(id)
	return l, err
}

// listBatches lists the jobs of a batch and of all batches in it, down to a floor: each batch on a walk of its own.
func listBatches(tx runner, filter sluice.JobFilter, labels string, before int64) (rows []listed, floor listed, err error) {
	part := history.PartsOf(filter)
	if len(part) == 0 {
		return nil, floor, nil
	}
	states, err := jsonOf(part[0].States)
	if err != nil {
		return nil, floor, err
	}
	tree, err := batchTree(tx, filter.Batch)
	if err != nil {
		return nil, floor, err
	}
	if len(tree) == 0 {
		tree = []sluice.ID{filter.Batch} // forgotten: its jobs are there
	}
	for _, id := range tree {
		found, err := list(tx, scanFloor, listBatchFloorSQL, id[:], before, history.ListLimit)
		if err != nil {
			return nil, floor, err
		}
		if len(found) > 0 && found[0].seq > floor.seq {
			floor = found[0]
		}
	}
	for _, id := range tree {
		found, err := list(tx, scanJob, listBatchSQL, filter.Queue, filter.Tenant, filter.Key, states, labels, before, filter.Limit+1,
			filter.MinAttempts, filter.MinRecoveries, floor.seq, id[:])
		if err != nil {
			return nil, floor, err
		}
		rows = append(rows, found...)
	}
	return rows, floor, nil
}
