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
)

const (
	// followSlice is how many runs one call to an engine asks for.
	followSlice = 500
	// followOverlap is how far back runs that ended are listed again: an engine may tell of some late.
	followOverlap = 15 * time.Second
	// followIdle is how far back they are listed when the first runs are under way after a while without any.
	followIdle = time.Minute
	// idleInterval is how often a queue is looked at whose engine is not followed here, and that has nothing at those that are.
	idleInterval = 30 * time.Second
)

// Followed counts what following the runs of a queue did.
type Followed struct {
	// Settled counts the jobs by the event that their run's end, or its absence, gave rise to.
	Settled map[sluice.Event]int `json:"settled"`
	// Ending runs are those of cancelled jobs that were asked to end, Ended ones those of which it is known by now that
	// they have, or never began.
	Ending int `json:"ending"`
	Ended  int `json:"ended"`
	// Unknown jobs are asked for again, because their engine gave no answer.
	Unknown int `json:"unknown"`
}

// jobs counts the jobs of which something became.
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
	// engines are those whose runs it follows; those at others are others' business.
	engines map[string]sluice.Engine
	// strict makes a run at an engine that it was not given an error.
	strict bool

	mu      sync.Mutex
	running bool
	at      time.Time // when to follow again
	engine  string    // that the queue had when it was followed last

	unsafe   noted     // its runs cannot be followed safely
	away     noted     // its engine does not say how they are
	unpolled noted     // they go nowhere
	polledAt time.Time // when its engine was asked for that

	since   time.Time            // ends before were listed, by the engine's clock
	seen    map[string]time.Time // refs that were listed since then, and when they ended
	strayAt time.Time            // when to ask for the next slice
	strayID sluice.ID            // where it begins
	walked  bool                 // all runs were asked for once
	keeps   map[string]retention
	least   time.Duration // the shortest of these, 0: there is none
	idle    bool          // nothing was at its engines at the last look
	found   int           // runs at its engines that the present look came upon

	endAfter sluice.StrayRun // behind which to go on with runs of cancelled jobs
	endedAll bool            // all of these were asked for once
}

// newFollower makes a follower that follows nothing yet.
func (u *Upkeep) newFollower(queue string) *follower {
	return &follower{upkeep: u, queue: queue, by: u.holder.ID, seen: make(map[string]time.Time), keeps: make(map[string]retention)}
}

// strictFollower makes a follower of all that this upkeep was given, for acts of people.
func (u *Upkeep) strictFollower(queue string) *follower {
	f := u.newFollower(queue)
	f.engines, f.strict = u.options.Engines, true
	return f
}

// follow settles the jobs whose runs have ended, and those of claims whose lease ran out, by asking their engines, and
// has the runs of cancelled jobs ended. An engine that cannot be reached leaves its jobs as they are.
func (f *follower) follow(ctx context.Context, q sluice.Queue) (done Followed, err error) {
	ctx, end := sluice.BeginStep(ctx, f.store(), sluice.Step{Name: sluice.StepFollow, Queue: q.Name})
	defer func() { end(sluice.StepEnd{Jobs: done.jobs(), Err: err}) }()
	done.Settled, f.found = make(map[sluice.Event]int), 0
	away, err := f.store().Dispatches(ctx, sluice.DispatchFilter{Queue: q.Name, Limit: 1})
	switch {
	case err != nil:
		return done, fmt.Errorf("look for runs under way: %w", err)
	case len(away) == 0: // what an engine lists is none of ours
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

// calm forgets what troubled the runs: there are none, or others follow them.
func (f *follower) calm() {
	f.unsafe.clear()
	f.away.clear()
	f.unpolled.clear()
}

func (f *follower) store() sluice.Store { return f.upkeep.store }

// askOverdue asks for the runs of claims whose lease ran out: who held them may or may not have started them.
func (f *follower) askOverdue(ctx context.Context, q sluice.Queue, done *Followed) error {
	late, err := f.store().Dispatches(ctx, sluice.DispatchFilter{Queue: q.Name, Overdue: true, Limit: q.Settings.RecoverBatch})
	if err != nil {
		return fmt.Errorf("list overdue claims: %w", err)
	}
	return f.ask(ctx, q, late, done)
}

// listEnded takes in the runs that ended since it did so last.
func (f *follower) listEnded(ctx context.Context, q sluice.Queue, done *Followed) error {
	engine := f.engines[q.Settings.Engine]
	if engine == nil {
		return nil
	}
	if f.since.IsZero() {
		f.since = q.Now.Add(-followOverlap)
	}
	newest := f.since
	var next []byte
	for {
		page, err := engine.Ended(ctx, sluice.TargetOf(q.Name, q.Settings), f.since, next)
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

func (f *follower) unseen(runs []sluice.RunOutcome) []sluice.RunOutcome {
	return slices.DeleteFunc(slices.Clone(runs), func(run sluice.RunOutcome) bool {
		_, seen := f.seen[run.Ref]
		return seen || run.Job.IsZero()
	})
}

// settleEnded settles the jobs of runs that ended, those whose present run they are.
func (f *follower) settleEnded(ctx context.Context, q sluice.Queue, runs []sluice.RunOutcome, done *Followed) error {
	for slice := range slices.Chunk(runs, followSlice) {
		ids := make([]sluice.ID, len(slice))
		for i, run := range slice {
			ids[i] = run.Job
		}
		claims, err := f.store().Dispatches(ctx, sluice.DispatchFilter{Queue: q.Name, IDs: ids, Limit: len(ids)})
		if err != nil {
			return fmt.Errorf("look at the jobs of runs that ended: %w", err)
		}
		byRef := make(map[string]*sluice.Claim, len(claims))
		for _, c := range claims {
			byRef[c.Ref] = c
		}
		var decisions []decision
		for _, run := range slice {
			if c := byRef[run.Ref]; c != nil && c.ID == run.Job && c.Engine == sluice.EngineOf(q.Settings) {
				decisions = append(decisions, decision{verdict(c, run, q.Settings, 0, q.Now), c, run})
			}
		}
		if err := f.settle(ctx, q, decisions, done); err != nil {
			return err
		}
	}
	return nil
}

// askStray asks for a slice of the runs under way, one by one: an engine that lists ends may miss one. At first it goes
// through all of them, because nobody may have looked for long.
func (f *follower) askStray(ctx context.Context, q sluice.Queue, done *Followed) error {
	if f.walked && time.Now().Before(f.strayAt) {
		return nil
	}
	for {
		claims, err := f.store().Dispatches(ctx, sluice.DispatchFilter{Queue: q.Name, After: f.strayID, Limit: followSlice})
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
			f.strayAt = time.Now().Add(f.inTime(sluice.SweepInterval))
			return nil
		}
	}
}

// ask asks engines how the runs of jobs are, and settles these accordingly.
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

// Judged is a job, what its engine says of its run, and what becomes of the job by that.
type Judged struct {
	Job sluice.Job        `json:"job"`
	Run sluice.RunOutcome `json:"run"`
	// Event is what the engine's answer gives rise to; empty: nothing.
	Event  sluice.Event `json:"event,omitempty"`
	Reason string       `json:"reason,omitempty"`

	decided decision
}

// judge asks engines how the runs of jobs are, a slice at a time, and hands over what becomes of each; of those that an
// engine gave no answer for, only how many.
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
	engine, target, err := f.engineAt(q, where, len(claims))
	if err != nil {
		return nil, err
	}
	keeps, err := f.retentionOf(ctx, engine, target, where)
	if err != nil {
		return nil, err
	}
	refs := make([]string, len(claims))
	for i, c := range claims {
		refs[i] = c.Ref
	}
	outcomes, unknown := engine.Outcomes(ctx, target, refs)
	if unknown != nil {
		unknown = fmt.Errorf("ask %s for %d runs: %w", where, len(refs), unknown)
	}
	if q.Now, err = f.clockAfter(ctx, q, claims, outcomes); err != nil {
		return nil, errors.Join(unknown, err)
	}
	var judged []Judged
	for i, run := range outcomes {
		if run.State == "" { // nobody knows
			continue
		}
		own, err := f.owns(ctx, q, claims[i].ID, run)
		if err != nil {
			return nil, err
		}
		if !own {
			run.State = sluice.RunForeign
		}
		decided := verdict(claims[i], run, q.Settings, keeps, q.Now)
		judged = append(judged, Judged{
			Job: claims[i].Job, Run: run, Event: decided.Event, Reason: cmp.Or(decided.Reason, decided.Error),
			decided: decision{decided, claims[i], run},
		})
	}
	return judged, unknown
}

// clockAfter is what the store's clock shows after an engine said that it lacks the run of a claim. Before, it may have
// shown any time: this process may have stood still since then, for longer than the engine remembers.
func (f *follower) clockAfter(ctx context.Context, q sluice.Queue, claims []*sluice.Claim, outcomes []sluice.RunOutcome) (time.Time, error) {
	for i, run := range outcomes {
		if run.State == sluice.RunAbsent && claims[i].State == sluice.StateClaimed {
			now, err := f.upkeep.client.Queue(ctx, q.Name)
			if err != nil {
				return q.Now, fmt.Errorf("read the store's clock: %w", err)
			}
			return now.Now, nil
		}
	}
	return q.Now, nil
}

// owns reports whether a run that has the ref of a job's is that job's: it was begun for it, or adopted.
func (f *follower) owns(ctx context.Context, q sluice.Queue, id sluice.ID, run sluice.RunOutcome) (bool, error) {
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
	return sluice.Adopts(ctx, f.store(), job, q.Settings, run, q.Now)
}

// follows reports whether it is this follower's business what some runs of a queue do, and counts them if it is.
func (f *follower) follows(q sluice.Queue, where string, runs int) bool {
	name, _ := sluice.TargetAt(q.Name, q.Settings, where)
	if f.engines[name] == nil && !f.strict {
		return false
	}
	f.found += runs
	return true
}

// engineAt gives the engine that has some runs of a queue, and where it has them, whatever the settings say by now.
func (f *follower) engineAt(q sluice.Queue, where string, runs int) (sluice.Engine, sluice.RunTarget, error) {
	name, target := sluice.TargetAt(q.Name, q.Settings, where)
	engine := f.engines[name]
	if engine == nil {
		return nil, target, fmt.Errorf("%d runs of queue %q are at the engine %q, which this upkeep was not given", runs, q.Name, name)
	}
	return engine, target, nil
}
