package postgres

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/storing"
)

//go:embed sql/order_lock.sql
var orderLockSQL string

//go:embed sql/order_last.sql
var orderLastSQL string

//go:embed sql/order_places.sql
var orderPlacesSQL string

//go:embed sql/order_next.sql
var orderNextSQL string

//go:embed sql/order_keys.sql
var orderKeysSQL string

//go:embed sql/stored.sql
var storedSQL string

//go:embed sql/after_find.sql
var afterFindSQL string

//go:embed sql/after_put.sql
var afterPutSQL string

//go:embed sql/after_again.sql
var afterAgainSQL string

//go:embed sql/awaited.sql
var awaitedSQL string

// ordered reports whether a job has an order key, or runs after other jobs.
func ordered(j *sluice.Insert) bool { return j.OrderKey != "" || len(j.After) > 0 }

func anyOrdered(jobs []sluice.Insert) bool {
	return slices.ContainsFunc(jobs, func(j sluice.Insert) bool { return ordered(&j) })
}

// takePlace gives the jobs of a batch their places in their orders, and the jobs that they wait for.
type takePlace struct {
	last    map[queueKey]sluice.ID // by order key: the last unfinished job
	places  []int64                // for the jobs that are stored next
	sent    map[sluice.ID]bool     // jobs of the batch that are already stored
	known   map[sluice.ID]other    // jobs that jobs of the batch run after
	twins   map[sluice.ID]sluice.ID
	refused map[int]error
	behind  []sluice.ID // jobs that others wait for, and which may have ended meanwhile
}

// other is a job that another job runs after.
type other struct{ completed bool }

// newLineUp locks the order keys of jobs, and reads the jobs that they wait for. Refused are the jobs that are refused
// already; nil: none. For jobs without any of these, newLineUp returns nil.
func newLineUp(ctx context.Context, db rowsQuerier, jobs []sluice.Insert, refused map[int]error) (*takePlace, error) {
	l := &takePlace{twins: make(map[sluice.ID]sluice.ID), refused: refused}
	switch {
	case !anyOrdered(jobs) && len(refused) == 0:
		return nil, nil
	case !anyOrdered(jobs):
		return l, nil
	case refused == nil:
		l.refused = make(map[int]error)
	}
	count := 0
	var keys []queueKey
	var ids, others uuidArray
	for i := range jobs {
		j := &jobs[i]
		if j.OrderKey != "" {
			keys, count = append(keys, queueKey{j.Queue, j.OrderKey}), count+1
		}
		if ordered(j) {
			ids = append(ids, j.ID)
		}
		for _, id := range j.After {
			others = append(others, id)
		}
	}
	if err := l.lock(ctx, db, keys); err != nil {
		return nil, err
	}
	var err error
	if count > 0 {
		if l.places, err = list(ctx, db, pgx.RowTo[int64], orderPlacesSQL, count); err != nil {
			return nil, err
		}
	}
	if l.sent, err = stored(ctx, db, ids); err != nil {
		return nil, err
	}
	if l.known, err = findOthers(ctx, db, others); err != nil {
		return nil, err
	}
	l.refuse(jobs)
	return l, nil
}

// stored returns those of these jobs that are stored.
func stored(ctx context.Context, db rowsQuerier, ids uuidArray) (map[sluice.ID]bool, error) {
	found, err := list(ctx, db, pgx.RowTo[pgtype.UUID], storedSQL, ids)
	if err != nil {
		return nil, err
	}
	out := make(map[sluice.ID]bool, len(found))
	for _, id := range found {
		out[idOf(id)] = true
	}
	return out, nil
}

// lockOrderKeys locks order keys until the transaction ends, and returns them sorted, each once.
func lockOrderKeys(ctx context.Context, db rowsQuerier, keys []queueKey) (queues, names []string, err error) {
	slices.SortFunc(keys, func(a, b queueKey) int { return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.key, b.key)) })
	for _, k := range slices.Compact(keys) {
		queues, names = append(queues, k.queue), append(names, k.key)
	}
	if len(names) == 0 {
		return nil, nil, nil
	}
	return queues, names, exec(ctx, db, orderLockSQL, queues, names)
}

func (l *takePlace) lock(ctx context.Context, db rowsQuerier, keys []queueKey) error {
	l.last = make(map[queueKey]sluice.ID)
	queues, names, err := lockOrderKeys(ctx, db, keys)
	if err != nil || len(names) == 0 {
		return err
	}
	rows, err := query(ctx, db, orderLastSQL, queues, names)
	if err != nil {
		return err
	}
	var k queueKey
	var id pgtype.UUID
	_, err = pgx.ForEachRow(rows, []any{&k.queue, &k.key, &id}, func() error {
		l.last[k] = idOf(id)
		return nil
	})
	return err
}

func findOthers(ctx context.Context, db rowsQuerier, ids uuidArray) (map[sluice.ID]other, error) {
	known := make(map[sluice.ID]other, len(ids))
	if len(ids) == 0 {
		return known, nil
	}
	rows, err := query(ctx, db, afterFindSQL, ids)
	if err != nil {
		return nil, err
	}
	var id pgtype.UUID
	var o other
	_, err = pgx.ForEachRow(rows, []any{&id, &o.completed}, func() error {
		known[idOf(id)] = o
		return nil
	})
	return known, err
}

// refuse finds the jobs that run after a job that is not stored and not earlier in the batch.
func (l *takePlace) refuse(jobs []sluice.Insert) {
	inBatch := make(map[sluice.ID]bool, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		for _, id := range j.After {
			if _, stored := l.known[id]; !stored && !inBatch[id] && !l.sent[j.ID] {
				l.refused[i] = storing.AfterUnknown(id)
			}
		}
		inBatch[j.ID] = inBatch[j.ID] || l.refused[i] == nil
	}
}

// twin records that a job of the batch was a duplicate, and which job stands for it.
func (l *takePlace) twin(id, twin sluice.ID) {
	if l != nil && id != twin {
		l.twins[id] = twin
	}
}

// place gives jobs that are about to be stored their places.
func (l *takePlace) place(jobs []sluice.Insert, stored []int, places map[int]keyPlace) map[int]keyPlace {
	if l == nil {
		return places
	}
	if places == nil {
		places = make(map[int]keyPlace, len(stored))
	}
	for _, i := range stored {
		j := &jobs[i]
		if !ordered(j) || l.sent[j.ID] {
			continue
		}
		place := places[i]
		if j.OrderKey != "" {
			key := queueKey{j.Queue, j.OrderKey}
			place.blockedBy = cmp.Or(place.blockedBy, l.last[key])
			place.order, l.places = l.places[0], l.places[1:]
			l.last[key] = j.ID
		}
		l.placeAfter(j, &place)
		if !place.blockedBy.IsZero() {
			l.behind = append(append(l.behind, place.blockedBy), place.rest...)
		}
		places[i] = place
	}
	return places
}

// placeAfter works out which of the jobs that j runs after j waits for. It waits for the last of them, as unblock.sql says.
func (l *takePlace) placeAfter(j *sluice.Insert, place *keyPlace) {
	var last sluice.ID
	place.failures = j.AfterFailures
	for _, id := range j.After {
		if twin, duplicate := l.twins[id]; duplicate {
			place.failures = storing.AfterTwin(place.failures, id, twin)
			id = twin
		}
		place.after = append(place.after, id)
		if l.known[id].completed { // jobs of the batch are not known, and unfinished
			continue
		}
		place.rest = append(place.rest, id)
		if bytes.Compare(id[:], last[:]) > 0 {
			last = id
		}
	}
	place.blockedBy = cmp.Or(place.blockedBy, last)
}

// put stores the jobs that newly stored jobs wait for.
func (l *takePlace) put(ctx context.Context, db rowsQuerier, jobs []sluice.Insert, stored []int, places map[int]keyPlace, taken map[sluice.ID]bool) error {
	if l == nil {
		return nil
	}
	var others, ids uuidArray
	var rules []string
	for _, i := range stored {
		if taken[jobs[i].ID] {
			continue
		}
		for _, id := range places[i].rest {
			others, ids = append(others, id), append(ids, jobs[i].ID)
			rules = append(rules, string(storing.AfterRule(jobs[i].AfterFailure, places[i].failures, id)))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return exec(ctx, db, afterPutSQL, others, ids, rules)
}

// sortedOnce sorts ids and removes duplicates.
func sortedOnce(ids []sluice.ID) []sluice.ID {
	slices.SortFunc(ids, func(a, b sluice.ID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(ids)
}

// textOf writes ids as an array in the server's text form.
func textOf(ids []sluice.ID) string {
	if len(ids) == 0 {
		return ""
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return "{" + strings.Join(texts, ",") + "}"
}

// noteAwaited records that the end of some jobs must unblock others. The record is committed before the jobs are
// stored.
func (s *Store) noteAwaited(ctx context.Context, jobs []sluice.Insert) error {
	queues, others := s.toAwait(jobs)
	if len(queues)+len(others) == 0 {
		return nil
	}
	err := s.call(ctx, "enqueue", func(ctx context.Context, _ bool) error {
		return exec(ctx, s.pool, awaitedSQL, queues, others)
	})
	for _, queue := range queues {
		if err == nil {
			s.awaited.Store(queue, true)
		}
	}
	return err
}

// noteAwaitedIn is noteAwaited in the transaction that stores the jobs. It must be a brief one: others that note the same queue wait
// for its end.
func (s *Store) noteAwaitedIn(ctx context.Context, tx pgx.Tx, jobs []sluice.Insert) error {
	queues, others := s.toAwait(jobs)
	if len(queues)+len(others) == 0 {
		return nil
	}
	return exec(ctx, tx, awaitedSQL, queues, others)
}

// toAwait returns the queues that must be recorded, and jobs whose queues must be.
func (s *Store) toAwait(jobs []sluice.Insert) (queues []string, others uuidArray) {
	if !anyOrdered(jobs) {
		return nil, nil
	}
	named := make(map[sluice.ID]bool)
	for i := range jobs {
		for _, id := range jobs[i].After {
			others, named[id] = append(others, id), true
		}
	}
	for i := range jobs {
		j := &jobs[i]
		awaited := j.OrderKey != "" || named[j.ID] || j.Key != "" && len(j.After) > 0 // the job may wait behind its twin
		if _, noted := s.awaited.Load(j.Queue); awaited && !noted && !slices.Contains(queues, j.Queue) {
			queues = append(queues, j.Queue)
		}
	}
	return queues, others
}

// takePlaceAgain gives requeued jobs their places again, and returns the jobs that they, and those behind them, wait for.
func takePlaceAgain(ctx context.Context, tx pgx.Tx, ids []sluice.ID) (behind []sluice.ID, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if err := exec(ctx, tx, afterAgainSQL, uuids(ids)); err != nil {
		return nil, err
	}
	if behind, err = lockNext(ctx, tx, ids); err != nil {
		return nil, err
	}
	rows, err := list(ctx, tx, scanLook, unblockSQL, uuidArray{}, uuids(ids), [16]byte{}, len(ids), edgeSlice)
	for _, r := range rows {
		behind = append(behind, r.behind)
	}
	return slices.DeleteFunc(behind, sluice.ID.IsZero), err
}

// lockNext locks the first job behind each requeued one in its order, if that waits, and returns the jobs for which those wait.
func lockNext(ctx context.Context, tx pgx.Tx, ids []sluice.ID) (behind []sluice.ID, err error) {
	var before []sluice.ID
	for n := 0; ; n++ {
		var locked []sluice.ID
		rows, err := query(ctx, tx, orderNextSQL, uuids(ids))
		if err != nil {
			return nil, err
		}
		var id, blocker pgtype.UUID
		_, err = pgx.ForEachRow(rows, []any{&id, &blocker}, func() error {
			locked, behind = append(locked, idOf(id)), append(behind, idOf(blocker))
			return nil
		})
		if err != nil || n > 0 && slices.Equal(locked, before) {
			return behind, err
		}
		before = locked
	}
}

// lockPlaces locks the order keys of jobs that are to be requeued, and returns the jobs that have an order key or
// dependencies.
func lockPlaces(ctx context.Context, tx pgx.Tx, ids []sluice.ID) (map[sluice.ID]bool, error) {
	found, err := list(ctx, tx, scanWantedKey, orderKeysSQL, uuids(ids))
	if err != nil {
		return nil, err
	}
	placed := make(map[sluice.ID]bool, len(found))
	var keys []queueKey
	for _, f := range found {
		placed[f.job] = true
		if f.key != "" {
			keys = append(keys, f.queueKey)
		}
	}
	_, _, err = lockOrderKeys(ctx, tx, keys)
	return placed, err
}

// taking removes the refused jobs from a round.
func (l *takePlace) taking(round []int) []int {
	if l == nil || len(l.refused) == 0 {
		return round
	}
	return slices.DeleteFunc(round, func(i int) bool { return l.refused[i] != nil })
}

// refuseByKey removes from a round the jobs that would change jobs of other tenants, and refuses the jobs that run after
// them. Those are in later rounds.
func (l *takePlace) refuseByKey(jobs []sluice.Insert, round []int, places map[int]keyPlace, refused map[int]error) ([]int, map[int]error) {
	before := len(refused)
	for i, place := range places {
		if place.refused == nil {
			continue
		}
		if refused == nil {
			refused = make(map[int]error)
		}
		refused[i] = place.refused
	}
	if len(refused) == before {
		return round, refused
	}
	if l != nil {
		l.refuse(jobs)
	}
	return slices.DeleteFunc(round, func(i int) bool { return refused[i] != nil }), refused
}

// outcome returns the result of the batch.
func (l *takePlace) outcome(receipts []sluice.Receipt, refused map[int]error, behind []sluice.ID) enqueued {
	if l != nil {
		behind = sortedOnce(append(behind, l.behind...))
	}
	return enqueued{receipts: receipts, refused: refused, behind: behind}
}
