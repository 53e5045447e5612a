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

// listWalk is the part of all jobs, by seq, that a page goes through.
type listWalk struct{ from, below int64 }

// to returns the walk with the last job to look at. Zero: to the end.
func (w listWalk) to(filter sluice.JobFilter, last listed) listWalk {
	switch {
	case last.seq == 0:
	case filter.OldestFirst:
		w.below = last.seq + 1
	default:
		w.from = last.seq
	}
	return w
}

// Jobs lists jobs, by their arrival.
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
		walk, err := listWalkOf(tx, filter)
		if err != nil {
			return err
		}
		if !filter.Batch.IsZero() {
			rows, floor, err = listBatches(tx, filter, labels, walk)
			return err
		}
		if floor, err = listFloor(tx, filter, walk); err != nil {
			return err
		}
		walk = walk.to(filter, floor)
		for _, part := range history.PartsOf(filter) {
			states, err := jsonOf(part.States)
			if err != nil {
				return err
			}
			found, err := list(tx, scanJob, history.InOrder(filter, listSQL[part.Way]), filter.Queue, filter.Tenant, filter.Key, states, labels,
				walk.below, filter.Limit+1, filter.MinAttempts, filter.MinRecoveries, walk.from)
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
	return pageOf(rows, filter, floor), err
}

// seqCursor is the prefix of a page's cursor.
const seqCursor = "seq:"

// listWalkOf returns the walk of a page from its cursor or id on. Without one, it goes through all jobs.
func listWalkOf(tx runner, filter sluice.JobFilter) (listWalk, error) {
	walk := listWalk{below: math.MaxInt64}
	if filter.Cursor == "" && filter.Before.IsZero() {
		return walk, nil
	}
	end, err := pageEnd(tx, filter)
	if filter.OldestFirst {
		walk.from = end + 1
	} else {
		walk.below = end
	}
	return walk, err
}

// pageEnd returns the number at which the page before ended.
func pageEnd(tx runner, filter sluice.JobFilter) (int64, error) {
	if filter.Cursor != "" {
		text, known := strings.CutPrefix(filter.Cursor, seqCursor)
		seq, err := strconv.ParseInt(text, 10, 64)
		if !known || err != nil {
			return 0, sluice.BadCursor(filter.Cursor)
		}
		return seq, nil
	}
	return pageStart(tx, filter.Before)
}

// pageOf makes a page. Floor is the job at which the search ended; zero: the search reached the
// end.
func pageOf(rows []listed, filter sluice.JobFilter, floor listed) sluice.Page {
	slices.SortFunc(rows, func(a, b listed) int { return cmp.Compare(b.seq, a.seq) })
	if filter.OldestFirst {
		slices.Reverse(rows)
	}
	var page sluice.Page
	last := floor
	if len(rows) > filter.Limit {
		rows, last = rows[:filter.Limit], rows[filter.Limit-1]
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
func listFloor(tx runner, filter sluice.JobFilter, walk listWalk) (floor listed, err error) {
	if !history.Bounded(filter) {
		return floor, nil
	}
	found, err := list(tx, scanFloor, history.InOrder(filter, listFloorSQL), walk.below, history.ListLimit, walk.from)
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
func listBatches(tx runner, filter sluice.JobFilter, labels string, walk listWalk) (rows []listed, floor listed, err error) {
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
		found, err := list(tx, scanFloor, history.InOrder(filter, listBatchFloorSQL), id[:], walk.below, history.ListLimit, walk.from)
		if err != nil {
			return nil, floor, err
		}
		if len(found) > 0 && (floor.seq == 0 || filter.OldestFirst == (found[0].seq < floor.seq)) {
			floor = found[0]
		}
	}
	walk = walk.to(filter, floor)
	for _, id := range tree {
		found, err := list(tx, scanJob, history.InOrder(filter, listBatchSQL), filter.Queue, filter.Tenant, filter.Key, states, labels, walk.below,
			filter.Limit+1, filter.MinAttempts, filter.MinRecoveries, walk.from, id[:])
		if err != nil {
			return nil, floor, err
		}
		rows = append(rows, found...)
	}
	return rows, floor, nil
}
