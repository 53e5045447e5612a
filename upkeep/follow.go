package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/step"
)

const (
	// followSlice is the most runs that one call to an engine asks for.
	followSlice = 500
	// followOverlap is how far back ended runs are listed again, because an engine may list some late.
	followOverlap = 15 * time.Second
	// followIdle is how far back ended runs are listed when runs start after a time without any.
	followIdle = time.Minute
	// idleInterval is how often to look at a queue whose engine is not followed here, and which has no runs at
	// the engines that are.
	idleInterval = 30 * time.Second
)

// Followed counts the results of following the runs of a queue.
type Followed struct {
	// Settled counts jobs by the event that followed from the end, or the absence, of their run.
	Settled map[sluice.Event]int `json:"settled"`
	// Ending counts runs of cancelled jobs that were asked to end. Ended counts those known to have ended or
	// never begun.
	Ending int `json:"ending"`
	Ended  int `json:"ended"`
	// Unknown counts jobs whose engine gave no answer; they are asked for again.
	Unknown int `json:"unknown"`
}

// jobs returns the number of jobs that changed.
func (f Followed) jobs() int {
	jobs := f.Ending + f.Ended
	for _, n := range f.Settled {
		jobs += n
	}
	return jobs
}

// follower follows the runs of one queue.
type follower struct {
	upkeep *Upkeep
	queue  string
	by     string
	// engines are the engines whose runs it follows; other processes follow runs at other engines.
	engines map[string]engine.Engine
	// strict makes a run at an unknown engine an error.
	strict bool

	mu      sync.Mutex
	running bool
	at      time.Time // when to follow again
	engine  string    // the queue's engine when it was last followed

	unsafe   noted     // its runs cannot be followed safely
	away     noted     // its engine does not answer about runs
	unpolled noted     // no worker polls for its runs
	polledAt time.Time // when its engine was last asked about pollers

	since   time.Time            // ends before were listed, by the engine's clock
	seen    map[string]time.Time // refs listed since then, and when they ended
	strayAt time.Time            // when to ask for the next slice of runs under way
	strayID sluice.ID            // first job of that slice
	walked  bool                 // all runs under way were asked for once
	lateID  sluice.ID            // after which overdue claim to go on
	keeps   map[string]retention
	least   time.Duration // the shortest retention in keeps, 0: none
	idle    bool          // no run was at its engines at the last look
	found   int           // runs at its engines found by the present look

	endAfter engine.OrphanRun // after which run of a cancelled job to go on
	endedAll bool             // all runs of cancelled jobs were asked for once
}

// newFollower makes a follower without engines.
func (u *Upkeep) newFollower(queue string) *follower {
	return &follower{upkeep: u, queue: queue, by: u.holder.ID, seen: make(map[string]time.Time), keeps: make(map[string]retention)}
}

// strictFollower makes a follower of all engines given to this upkeep, for acts of people.
func (u *Upkeep) strictFollower(queue string) *follower {
	f := u.newFollower(queue)
	f.engines, f.strict = u.options.Engines, true
	return f
}

// follow asks engines about runs, and settles the jobs of ended runs and of claims whose lease ran out. Runs of
// cancelled jobs are asked to end. If an engine is unreachable, its jobs stay as they are.
func (f *follower) follow(ctx context.Context, q sluice.Queue) (done Followed, err error) {
	ctx, end := step.Begin(ctx, f.store(), step.Step{Name: step.Follow, Queue: q.Name})
	defer func() { end(step.End{Jobs: done.jobs(), Err: err}) }()
	done.Settled, f.found = make(map[sluice.Event]int), 0
	away, err := engine.Given(f.store()).Dispatches(ctx, engine.DispatchFilter{Queue: q.Name, Limit: 1})
	switch {
	case err != nil:
		return done, fmt.Errorf("look for runs under way: %w", err)
	case len(away) == 0: // without runs of this queue, an engine's list is of no use
		f.calm()
		f.since, f.walked, f.strayID = q.Now.Add(-followIdle), true, sluice.ID{}
	default:
		f.lookForPollers(ctx, q)
		err = errors.Join(f.guard(ctx, q), f.askOverdue(ctx, q, &done), f.listEnded(ctx, q, &done), f.askStray(ctx, q, &done))
	}
	strayErr := f.endStray(ctx, q, &done)
	f.idle = f.found == 0 && strayErr == nil
	return done, errors.Join(err, strayErr)
}

// calm clears the conditions of the runs: there are none, or another process follows them.
func (f *follower) calm() {
	f.unsafe.clear()
	f.away.clear()
	f.unpolled.clear()
}

func (f *follower) store() sluice.Store { return f.upkeep.store }

// askOverdue asks for the runs of claims whose lease ran out: their holder may or may not have started them. One
// batch per call, round and round: claims that nobody here can ask for then hold up no others.
func (f *follower) askOverdue(ctx context.Context, q sluice.Queue, done *Followed) error {
	limit := q.Settings.RecoverBatch
	late, err := engine.Given(f.store()).Dispatches(ctx, engine.DispatchFilter{Queue: q.Name, Overdue: true, After: f.lateID, Limit: limit})
	if err != nil {
		return fmt.Errorf("list overdue claims: %w", err)
	}
	f.lateID = sluice.ID{}
	if len(late) == limit {
		f.lateID = late[limit-1].ID
	}
	return f.ask(ctx, q, late, done)
}

// listEnded settles the jobs of runs that ended since the last call.
func (f *follower) listEnded(ctx context.Context, q sluice.Queue, done *Followed) error {
	remote := f.engines[q.Settings.Engine]
	if remote == nil {
		return nil
	}
	if f.since.IsZero() {
		f.since = q.Now.Add(-followOverlap)
	}
	newest := f.since
	var next []byte
	for {
		page, err := remote.Ended(ctx, engine.TargetOf(q.Name, q.Settings), f.since, next)
		if err != nil {
			return fmt.Errorf("list runs that ended: %w", err)
		}
		if err := f.settleEnded(ctx, q, f.unseen(page.Runs), done); err != nil {
			return err
		}
		for _, run := range page.Runs {
			f.seen[run.Ref] = run.EndedAt
			if run.EndedAt.After(newest) {
				newest = run.EndedAt
			}
		}
		if next = page.Next; next == nil {
			break
		}
	}
	if from := newest.Add(-followOverlap); from.After(f.since) {
		f.since = from
	}
	for ref, at := range f.seen {
		if at.Before(f.since) {
			delete(f.seen, ref)
		}
	}
	return nil
}

func (f *follower) unseen(runs []engine.Outcome) []engine.Outcome {
	return slices.DeleteFunc(slices.Clone(runs), func(run engine.Outcome) bool {
		_, seen := f.seen[run.Ref]
		return seen || run.Job.IsZero()
	})
}

// settleEnded settles the jobs of ended runs, if the run is the job's current one.
func (f *follower) settleEnded(ctx context.Context, q sluice.Queue, runs []engine.Outcome, done *Followed) error {
	for slice := range slices.Chunk(runs, followSlice) {
		ids := make([]sluice.ID, len(slice))
		for i, run := range slice {
			ids[i] = run.Job
		}
		claims, err := engine.Given(f.store()).Dispatches(ctx, engine.DispatchFilter{Queue: q.Name, IDs: ids, Limit: len(ids)})
		if err != nil {
			return fmt.Errorf("look at the jobs of runs that ended: %w", err)
		}
		byRef := make(map[string]*sluice.Claim, len(claims))
		for _, c := range claims {
			byRef[c.Ref] = c
		}
		var decisions []decision
		for _, run := range slice {
			if c := byRef[run.Ref]; c != nil && c.ID == run.Job && c.Engine == engine.Location(q.Settings) {
				decisions = append(decisions, decision{verdict(c, run, q.Settings, 0, q.Now), c, run})
			}
		}
		if err := f.settle(ctx, q, decisions, done); err != nil {
			return err
		}
	}
	return nil
}

// askStray asks one by one for a slice of the runs under way, because an engine's list of ended runs may miss
// one. The first call asks for all of them, because no process may have asked for a long time.
func (f *follower) askStray(ctx context.Context, q sluice.Queue, done *Followed) error {
	if f.walked && time.Now().Before(f.strayAt) {
		return nil
	}
	for {
		claims, err := engine.Given(f.store()).Dispatches(ctx, engine.DispatchFilter{Queue: q.Name, After: f.strayID, Limit: followSlice})
		if err != nil {
			return fmt.Errorf("list runs under way: %w", err)
		}
		f.strayID = sluice.ID{}
		if len(claims) == followSlice {
			f.strayID = claims[len(claims)-1].ID
		}
		away := slices.DeleteFunc(claims, func(c *sluice.Claim) bool { return c.State != sluice.StateDispatched })
		if err := f.ask(ctx, q, away, done); err != nil {
			return err
		}
		if f.strayID.IsZero() {
			f.walked = true
		}
		if f.walked {
			f.strayAt = time.Now().Add(f.inTime(engine.SweepInterval))
			return nil
		}
	}
}

// ask asks engines about the runs of jobs, and settles the jobs accordingly.
func (f *follower) ask(ctx context.Context, q sluice.Queue, claims []*sluice.Claim, done *Followed) error {
	return f.judge(ctx, q, claims, func(judged []Judged, unknown int) error {
		done.Unknown += unknown
		var decisions []decision
		for _, j := range judged {
			decisions = append(decisions, j.decided)
		}
		return f.settle(ctx, q, decisions, done)
	})
}

// Judged is a job, its engine's answer about its run, and the event that follows for the job.
type Judged struct {
	Job sluice.Job     `json:"job"`
	Run engine.Outcome `json:"run"`
	// Event is the event that follows from the engine's answer; empty: none.
	Event  sluice.Event `json:"event,omitempty"`
	Reason string       `json:"reason,omitempty"`

	decided decision
}

// judge asks engines about the runs of jobs, a slice at a time. Per slice, take receives the judged jobs and
// the number of jobs without an answer.
func (f *follower) judge(ctx context.Context, q sluice.Queue, claims []*sluice.Claim, take func(judged []Judged, unknown int) error) error {
	var failed []error
	for engine, ofEngine := range byEngine(claims) {
		if !f.follows(q, engine, len(ofEngine)) {
			continue
		}
		for slice := range slices.Chunk(ofEngine, followSlice) {
			judged, err := f.judgeSlice(ctx, q, engine, slice)
			failed = append(failed, err, take(judged, len(slice)-len(judged)))
		}
	}
	return errors.Join(failed...)
}

func byEngine(claims []*sluice.Claim) map[string][]*sluice.Claim {
	all := make(map[string][]*sluice.Claim)
	for _, c := range claims {
		all[c.Engine] = append(all[c.Engine], c)
	}
	return all
}

func (f *follower) judgeSlice(ctx context.Context, q sluice.Queue, where string, claims []*sluice.Claim) ([]Judged, error) {
	remote, target, err := f.engineAt(q, where, len(claims))
	if err != nil {
		return nil, err
	}
	keeps, err := f.retentionOf(ctx, remote, target, where)
	if err != nil {
		return nil, err
	}
	refs := make([]string, len(claims))
	for i, c := range claims {
		refs[i] = c.Ref
	}
	outcomes, unknown := remote.Outcomes(ctx, target, refs)
	if unknown != nil {
		unknown = fmt.Errorf("ask %s for %d runs: %w", where, len(refs), unknown)
	}
	if q.Now, err = f.clockAfter(ctx, q, claims, outcomes); err != nil {
		return nil, errors.Join(unknown, err)
	}
	var judged []Judged
	for i, run := range outcomes {
		if run.State == "" { // no answer
			continue
		}
		own, err := f.owns(ctx, q, claims[i].ID, run)
		if err != nil {
			return nil, err
		}
		if !own {
			run.State = engine.Foreign
		}
		decided := verdict(claims[i], run, q.Settings, keeps, q.Now)
		judged = append(judged, Judged{
			Job: claims[i].Job, Run: run, Event: decided.Event, Reason: cmp.Or(decided.Reason, decided.Error),
			decided: decision{decided, claims[i], run},
		})
	}
	return judged, unknown
}

// clockAfter returns the store's time after an engine reported a claim's run as absent. An earlier time may be
// too old: this process may have been frozen since, for longer than the engine keeps runs.
func (f *follower) clockAfter(ctx context.Context, q sluice.Queue, claims []*sluice.Claim, outcomes []engine.Outcome) (time.Time, error) {
	for i, run := range outcomes {
		if run.State == engine.Absent && claims[i].State == sluice.StateClaimed {
			now, err := f.upkeep.client.Queue(ctx, q.Name)
			if err != nil {
				return q.Now, fmt.Errorf("read the store's clock: %w", err)
			}
			return now.Now, nil
		}
	}
	return q.Now, nil
}

// owns reports whether a run with a job's ref is the job's run: the run was started for the job, or adopted.
func (f *follower) owns(ctx context.Context, q sluice.Queue, id sluice.ID, run engine.Outcome) (bool, error) {
	if run.Job.IsZero() || run.Job == id {
		return true, nil
	}
	if run.Work == "" {
		return false, nil
	}
	job, err := f.store().Job(ctx, id)
	if errors.Is(err, sluice.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at job %s: %w", id, err)
	}
	return engine.Adopts(ctx, f.store(), job, q.Settings, run, q.Now)
}

// follows reports whether this follower is responsible for some runs of a queue, and counts them if it is.
func (f *follower) follows(q sluice.Queue, where string, runs int) bool {
	name, _ := engine.TargetAt(q.Name, q.Settings, where)
	if f.engines[name] == nil && !f.strict {
		return false
	}
	f.found += runs
	return true
}

// engineAt returns the engine that has some runs of a queue, and their target there, even if the settings have
// changed.
func (f *follower) engineAt(q sluice.Queue, where string, runs int) (engine.Engine, engine.Target, error) {
	name, target := engine.TargetAt(q.Name, q.Settings, where)
	remote := f.engines[name]
	if remote == nil {
		return nil, target, fmt.Errorf("%d runs of queue %q are at the engine %q, which this upkeep was not given", runs, q.Name, name)
	}
	return remote, target, nil
}
