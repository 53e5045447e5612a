package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/storing"
)

//go:embed sql/key_take.sql
var keyTakeSQL string

//go:embed sql/key_holders.sql
var keyHoldersSQL string

//go:embed sql/key_pass.sql
var keyPassSQL string

//go:embed sql/put_off.sql
var putOffSQL string

//go:embed sql/key_pass_on.sql
var keyPassOnSQL string

//go:embed sql/coalesce.sql
var coalesceSQL string

//go:embed sql/key_hand_on.sql
var keyHandOnSQL string

//go:embed sql/key_free.sql
var keyFreeSQL string

//go:embed sql/lock_blocker.sql
var lockBlockerSQL string

//go:embed sql/lock_waiting.sql
var lockWaitingSQL string

// keyPlace is the effect of a job's key, order key and dependencies. The zero value: the job is stored as it is.
type keyPlace struct {
	duplicateOf sluice.ID // the job is not stored, because this job holds the key
	replaced    sluice.ID // the job replaces this waiting job
	blockedBy   sluice.ID // the job waits until this job has ended
	dueAt       time.Time // the job waits for the end of another's window
	refused     error     // why the job is not stored
	order       int64     // position in its order
	after       []sluice.ID
	failures    map[sluice.ID]sluice.AfterFailure // the rules of single jobs of after
	rest        []sluice.ID                       // the jobs of after that have not completed
	awaited     []sluice.ID                       // jobs that ended for this one, and for which others may wait
}

type queueKey struct{ queue, key string }

// keyHold is the job that holds a key.
type keyHold struct {
	queueKey
	job            sluice.ID
	unfinishedOnly bool
	state          sluice.State // of the holder; empty: it has ended
	blockedBy      sluice.ID
	forWindow      bool    // the key is held for a window
	stored         bool    // the job that wants the key is already stored: it was sent again
	tenant         *string // of the holder; nil: it was deleted
}

// stale reports whether the key was left behind by a job that has ended.
func (h keyHold) stale() bool { return h.unfinishedOnly && h.state == "" }

// refuses reports whether a job must not meet the holder of its key.
func (h keyHold) refuses(j *sluice.Insert) bool {
	return h.tenant != nil && storing.RefusesKey(j, *h.tenant)
}

// rounds splits a batch so that no two jobs of a round share a key or an id. The rounds are stored one after the
// other, as if they came in separate calls. Jobs of one order stay in order. A job that its key may refuse is in an
// earlier round than the jobs that run after it.
func rounds(jobs []sluice.Insert) [][]int {
	var out [][]int
	byKey, byOrder, byID := make(map[queueKey]int), make(map[queueKey]int), make(map[sluice.ID]int, len(jobs))
	doubtful := make(map[sluice.ID]int)
	for i, j := range jobs {
		round := byID[j.ID]
		for _, id := range j.After { // their outcome is known when this job's turn comes
			round = max(round, byID[id]-1, doubtful[id])
		}
		if j.OrderKey != "" {
			round = max(round, byOrder[queueKey{j.Queue, j.OrderKey}])
		}
		if j.Key != "" {
			place := queueKey{j.Queue, j.Key}
			round = max(round, byKey[place])
			byKey[place] = round + 1
		}
		if j.OrderKey != "" {
			byOrder[queueKey{j.Queue, j.OrderKey}] = round
		}
		if byID[j.ID] = round + 1; storing.MayRefuseKey(&j) {
			doubtful[j.ID] = round + 1
		}
		for round >= len(out) {
			out = append(out, nil)
		}
		out[round] = append(out[round], i)
	}
	return out
}

// placeRound works out the effect of the keys of a round's jobs. Brief means that the transaction ends at once, so
// that other transactions may be kept waiting.
func placeRound(ctx context.Context, db rowsQuerier, jobs []sluice.Insert, round []int, brief bool) (map[int]keyPlace, error) {
	var wants []int
	for _, i := range round {
		if jobs[i].Key != "" {
			wants = append(wants, i)
		}
	}
	if len(wants) == 0 {
		return nil, nil
	}
	slices.SortFunc(wants, func(a, b int) int {
		return cmp.Or(cmp.Compare(jobs[a].Queue, jobs[b].Queue), cmp.Compare(jobs[a].Key, jobs[b].Key))
	})
	wanted := make([]wantedKey, len(wants))
	for k, i := range wants {
		wanted[k] = wantedBy(jobs[i])
	}
	holds, err := takeKeys(ctx, db, wanted, true)
	if err != nil {
		return nil, err
	}
	places := make(map[int]keyPlace)
	for k, i := range wants {
		if hold, held := holds[wanted[k].queueKey]; held {
			if places[i], err = placeBehind(ctx, db, jobs[i], hold, brief); err != nil {
				return nil, err
			}
		}
	}
	return places, nil
}

// placeBehind places a job whose key another job holds.
func placeBehind(ctx context.Context, db rowsQuerier, j sluice.Insert, hold keyHold, brief bool) (keyPlace, error) {
	queued := hold.state == sluice.StateQueued
	switch {
	case hold.stored, hold.job == j.ID:
		return keyPlace{duplicateOf: j.ID}, nil
	case hold.stale():
		return keyPlace{}, passKey(ctx, db, wantedBy(j))
	case hold.refuses(&j):
		return keyPlace{refused: storing.KeyRefusal(&j)}, nil
	case j.OnDuplicate == sluice.Replace && queued:
		return replace(ctx, db, j, hold, brief)
	case j.OnDuplicate == sluice.Coalesce && j.KeyScope == sluice.ForWindow && hold.forWindow:
		if met, err := meet(ctx, db, j, hold); err != nil || met {
			return keyPlace{duplicateOf: hold.job}, err
		}
		starts, err := list(ctx, db, pgx.RowTo[time.Time], keyPassOnSQL, j.Queue, j.Key, [16]byte(j.ID), j.KeyWindow)
		if err != nil || len(starts) == 0 {
			return keyPlace{duplicateOf: hold.job}, err
		}
		return keyPlace{dueAt: starts[0]}, nil
	case (j.OnDuplicate == sluice.Coalesce || j.OnDuplicate == sluice.Debounce) && hold.unfinishedOnly:
		if met, err := meet(ctx, db, j, hold); err != nil || met {
			return keyPlace{duplicateOf: hold.job}, err
		}
		now, err := holderNow(ctx, db, j, hold)
		if err != nil {
			return keyPlace{}, err
		}
		if now.job != hold.job || now.state != hold.state {
			return placeBehind(ctx, db, j, now, brief)
		}
		if err := passKey(ctx, db, wantedBy(j)); err != nil {
			return keyPlace{}, err
		}
		blocker, err := keepBlocker(ctx, db, hold.job, brief)
		return keyPlace{blockedBy: blocker}, err
	}
	return keyPlace{duplicateOf: hold.job}, nil
}

// holderNow reads the holder of a key again if it has waited: while another transaction had locked its row, it may have
// started or ended.
func holderNow(ctx context.Context, db rowsQuerier, j sluice.Insert, hold keyHold) (keyHold, error) {
	if hold.state != sluice.StateQueued {
		return hold, nil
	}
	now, err := list(ctx, db, scanKeyHold, keyHoldersSQL, []string{j.Queue}, []string{j.Key}, uuidArray{j.ID})
	return first(now), err
}

// meet replaces the payload of the job that holds the key, if that job waits and was never handed out.
func meet(ctx context.Context, db rowsQuerier, j sluice.Insert, hold keyHold) (bool, error) {
	if hold.state != sluice.StateQueued {
		return false, nil
	}
	labels, err := labelsText(j)
	if err != nil {
		return false, err
	}
	met, err := list(ctx, db, pgx.RowTo[pgtype.UUID], coalesceSQL, [16]byte(hold.job), []byte(j.Payload), labels, nullTime(j.ExpiresAt))
	if err != nil || len(met) == 0 || j.OnDuplicate != sluice.Debounce {
		return len(met) > 0, err
	}
	return true, exec(ctx, db, putOffSQL, [16]byte(hold.job), nullTime(j.DueAt), j.Delay, orNull(j.KeyWindow), nullTime(j.ExpiresAt))
}

// keepBlocker locks a blocker until the job behind it is stored, so that the end of the blocker unblocks that job.
// A zero id means that the blocker has ended. In a caller's own transaction, which may be long, keepBlocker locks
// nothing: if the blocker ends meanwhile, [Store.Repair] unblocks the job.
func keepBlocker(ctx context.Context, db rowsQuerier, blocker sluice.ID, brief bool) (sluice.ID, error) {
	if !brief || blocker.IsZero() {
		return blocker, nil
	}
	locked, err := list(ctx, db, pgx.RowTo[pgtype.UUID], lockBlockerSQL, [16]byte(blocker))
	if err != nil || len(locked) == 0 {
		return sluice.ID{}, err
	}
	return blocker, nil
}

// replace cancels the waiting job that holds the key, unless that job has just started or ended. It locks a running twin
// before, because the end of the twin lets the waiting job go.
func replace(ctx context.Context, db rowsQuerier, j sluice.Insert, hold keyHold, brief bool) (keyPlace, error) {
	blocker, err := keepBlocker(ctx, db, hold.blockedBy, brief)
	if err != nil {
		return keyPlace{}, err
	}
	locked, err := list(ctx, db, pgx.RowTo[pgtype.UUID], lockWaitingSQL, [16]byte(hold.job))
	if err != nil {
		return keyPlace{}, err
	}
	if len(locked) == 0 {
		now, err := holderNow(ctx, db, j, hold)
		if err != nil {
			return keyPlace{}, err
		}
		return placeBehind(ctx, db, j, now, brief)
	}
	if err := passKey(ctx, db, wantedBy(j)); err != nil {
		return keyPlace{}, err
	}
	out, err := endByAct(ctx, db, actEnding{
		event: sluice.EventCancel, from: []sluice.State{sluice.StateQueued}, ids: []sluice.ID{hold.job},
		reasons: []string{"replaced by " + j.ID.String()}, actors: []string{"producer"},
	})
	if err != nil {
		return keyPlace{}, err
	}
	if !brief && len(out.awaited) > 0 {
		if err := unblockIn(ctx, db, out.awaited); err != nil {
			return keyPlace{}, err
		}
	}
	return keyPlace{replaced: hold.job, blockedBy: blocker, awaited: out.awaited}, nil
}

// freeKeys frees the keys of ended jobs and unblocks the jobs behind them. If an ended job waited behind a running
// holder, that holder gets the key back. Locked are the ended jobs of which a job behind is locked by another transaction:
// unblock looks at them again.
func freeKeys(ctx context.Context, db rowsQuerier, ended, blockers []pgtype.UUID) (free []moved, locked []sluice.ID, err error) {
	if slices.ContainsFunc(blockers, func(id pgtype.UUID) bool { return id.Valid }) {
		if err := exec(ctx, db, keyHandOnSQL, ended, blockers); err != nil {
			return nil, nil, err
		}
	}
	rows, err := list(ctx, db, scanMoved, keyFreeSQL, ended)
	for _, m := range rows {
		if m.from == lookAgain {
			locked = append(locked, m.id)
		} else {
			free = append(free, m)
		}
	}
	return free, locked, err
}

// wantedKey is a key that a job asks for.
type wantedKey struct {
	queueKey
	job     sluice.ID
	window  *time.Duration
	forEver bool
}

func wantedBy(j sluice.Insert) wantedKey {
	want := wantedKey{queueKey: queueKey{j.Queue, j.Key}, job: j.ID, forEver: j.KeyScope == sluice.ForEver}
	if j.KeyScope == sluice.ForWindow {
		want.window = &j.KeyWindow
	}
	return want
}

// takeKeys gives each job its key, and returns the holders of keys that were taken before. The keys must be sorted
// and distinct. With forNew, a job that is already stored takes no key. The rows of the keys stay locked.
func takeKeys(ctx context.Context, db rowsQuerier, wanted []wantedKey, forNew bool) (map[queueKey]keyHold, error) {
	queues, keys := make([]string, len(wanted)), make([]string, len(wanted))
	jobs, windows, forEver := make(uuidArray, len(wanted)), make([]*time.Duration, len(wanted)), make([]bool, len(wanted))
	for i, w := range wanted {
		queues[i], keys[i], jobs[i], windows[i], forEver[i] = w.queue, w.key, w.job, w.window, w.forEver
	}
	taken, err := list(ctx, db, scanQueueKey, keyTakeSQL, queues, keys, jobs, windows, forEver, forNew)
	if err != nil || len(taken) == len(wanted) {
		return nil, err
	}
	holds, err := list(ctx, db, scanKeyHold, keyHoldersSQL, queues, keys, jobs)
	if err != nil {
		return nil, err
	}
	out := make(map[queueKey]keyHold, len(holds))
	for _, hold := range holds {
		out[hold.queueKey] = hold
	}
	for _, key := range taken {
		delete(out, key)
	}
	return out, nil
}

func passKey(ctx context.Context, db rowsQuerier, to wantedKey) error {
	return exec(ctx, db, keyPassSQL, to.queue, to.key, [16]byte(to.job), to.window, to.forEver)
}

func scanQueueKey(row pgx.CollectableRow) (queueKey, error) {
	var k queueKey
	err := row.Scan(&k.queue, &k.key)
	return k, err
}

func scanKeyHold(row pgx.CollectableRow) (keyHold, error) {
	var hold keyHold
	var job, blockedBy pgtype.UUID
	var state *string
	if err := row.Scan(&hold.queue, &hold.key, &job, &hold.unfinishedOnly, &state, &blockedBy, &hold.stored, &hold.forWindow, &hold.tenant); err != nil {
		return hold, err
	}
	hold.job, hold.blockedBy = idOf(job), idOf(blockedBy)
	if state != nil {
		hold.state = sluice.State(*state)
	}
	return hold, nil
}
