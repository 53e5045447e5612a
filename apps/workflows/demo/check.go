package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/workflows/graph"
	"github.com/sluice-queue/sluice/apps/workflows/records"
	"github.com/sluice-queue/sluice/audit"
)

// group is what the audit tells of the noisy workspace, or of the others of a plan.
type group struct {
	name       string
	workspaces int
	claims     int
	early      int // of the first half of all claims
	capacity   int
	highest    int // in flight of one workspace at one moment
	over       int // claims that gave a workspace more than its capacity
	waits      []time.Duration
	// free are the waits while the workspace had a slot free, passed is how often the noisy one was served meanwhile at
	// the most.
	free   []time.Duration
	passed int
}

// standing is a workspace while the audit is replayed.
type standing struct {
	group   *group
	name    string
	held    int
	waiting int
	freedAt time.Time // when it had a slot free again
	passed  int
}

// replay follows every move of every execution, in the order in which they were made.
type replay struct {
	groups     map[string]*group
	workspaces map[string]*standing
	since      map[sluice.ID]time.Time // from when each waits
	half       int                     // of all claims
	claims     int
	// claimed and buried count these moves of the workspaces of which something is gone.
	claimed, buried map[string]int
}

// check replays the audit and asks the database, and says what holds. It is an error if something does not. Started is
// how many runs Temporal has counted.
func (s *show) check(ctx context.Context, started int) error {
	moves, err := movesOf(ctx, s.database.Client)
	if err != nil {
		return err
	}
	owners, err := s.database.Owners(ctx)
	if err != nil {
		return err
	}
	r := s.newReplay()
	for _, m := range moves {
		if m.Event == sluice.EventClaim {
			r.half++
		}
	}
	r.half /= 2
	ended := make(map[sluice.State]int)
	for _, m := range moves {
		if m.To.Finished() {
			ended[m.To]++
		}
		owner := owners[m.JobID.String()]
		if w := r.workspaces[owner]; w != nil {
			r.move(w, m)
			continue
		}
		switch m.Event {
		case sluice.EventClaim:
			r.claimed[owner]++
		case sluice.EventBury:
			r.buried[owner]++
		}
	}
	s.tellGroups(r)
	return s.judge(ctx, r, ended, started)
}

// movesOf reads the whole audit of the queue, the oldest first.
func movesOf(ctx context.Context, client *sluice.Client) ([]sluice.AuditEntry, error) {
	filter := sluice.AuditFilter{Object: audit.ObjectJob, Name: records.Queue, Limit: 10_000}
	var all []sluice.AuditEntry
	for {
		page, err := client.Audit(ctx, filter)
		if err != nil {
			return nil, fmt.Errorf("read the audit: %w", err)
		}
		all = append(all, page...)
		if len(page) < filter.Limit {
			slices.Reverse(all)
			return all, nil
		}
		filter.Before = page[len(page)-1].Seq
	}
}

func (s *show) newReplay() *replay {
	r := &replay{
		groups: make(map[string]*group), workspaces: make(map[string]*standing), since: make(map[sluice.ID]time.Time),
		claimed: make(map[string]int), buried: make(map[string]int),
	}
	for _, name := range groupNames {
		r.groups[name] = &group{name: name, capacity: s.capacity[name]}
	}
	r.groups[noisyName].capacity = s.capacity[planOf(0)]
	join := func(workspace, name string) {
		g := r.groups[name]
		g.workspaces++
		r.workspaces[workspace] = &standing{group: g, name: workspace}
	}
	join(noisyName, noisyName)
	for _, w := range s.quiet {
		join(w.ID, w.Plan)
	}
	return r
}

func inFlight(s sluice.State) bool { return s == sluice.StateClaimed || s == sluice.StateDispatched }

// move follows one move of an execution of a workspace.
func (r *replay) move(w *standing, m sluice.AuditEntry) {
	if inFlight(m.From) && !inFlight(m.To) {
		if w.held--; w.held == w.group.capacity-1 {
			w.freedAt = m.At
		}
	}
	if m.To == sluice.StateQueued {
		if w.waiting++; w.waiting == 1 {
			w.passed = 0
		}
		r.since[m.JobID] = m.At
	}
	if m.Event == sluice.EventClaim {
		r.claim(w, m)
	}
}

func (r *replay) claim(w *standing, m sluice.AuditEntry) {
	g, since := w.group, r.since[m.JobID]
	w.waiting--
	w.held++
	g.highest = max(g.highest, w.held)
	if w.held > g.capacity {
		g.over++
	}
	g.waits = append(g.waits, m.At.Sub(since))
	if w.freedAt.After(since) {
		since = w.freedAt
	}
	g.free = append(g.free, m.At.Sub(since))
	g.passed = max(g.passed, w.passed)
	w.passed = 0
	g.claims++
	if r.claims++; r.claims <= r.half {
		g.early++
	}
	if w.name != noisyName {
		return
	}
	for _, other := range r.workspaces {
		if other != w && other.waiting > 0 && other.held < other.group.capacity {
			other.passed++
		}
	}
}

// tellGroups shows what the audit tells.
func (s *show) tellGroups(r *replay) {
	_, _ = fmt.Fprintf(s.out, "\n%-11s %10s %10s %6s %9s %5s %12s %12s %12s %7s\n", "", "workspaces", "executions", "share",
		"in flight", "over", "median wait", "of it free", "longest free", "passed")
	for _, name := range groupNames {
		g := r.groups[name]
		_, _ = fmt.Fprintf(s.out, "%-11s %10d %10d %4d %% %4d / %2d %5d %12s %12s %12s %7d\n", g.name, g.workspaces, g.claims,
			100*g.early/max(r.half, 1), g.highest, g.capacity, g.over, short(median(g.waits)), short(median(g.free)), short(longest(g.free)), g.passed)
	}
	_, _ = fmt.Fprintln(s.out, `
share: of the first half of all claims. in flight: the most of one workspace, and its capacity. free: waited while the
workspace had a slot free. passed: how often the noisy workspace was served meanwhile, at the most.`)
}

func short(d time.Duration) string { return d.Round(time.Millisecond).String() }

func median(waits []time.Duration) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	slices.Sort(waits)
	return waits[len(waits)/2]
}

func longest(waits []time.Duration) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	return slices.Max(waits)
}

// judge says what holds.
func (s *show) judge(ctx context.Context, r *replay, ended map[sluice.State]int, started int) error {
	runs, err := s.database.CheckRuns(ctx)
	if err != nil {
		return err
	}
	astray, err := s.database.Astray(ctx)
	if err != nil {
		return err
	}
	over, passed, noisy := 0, 0, r.groups[noisyName]
	var free []time.Duration
	for _, name := range groupNames {
		g := r.groups[name]
		over += g.over
		if g != noisy {
			passed, free = max(passed, g.passed), append(free, g.free...)
		}
	}
	keys, calls := s.target.counted()
	want := s.enqueued - len(lost)
	verdicts := []verdict{
		{over == 0, fmt.Sprintf("no workspace ever had more in flight than its capacity: %d claims were too many", over)},
		{
			ended[sluice.StateCompleted] == want && ended[sluice.StateDead] == len(lost),
			fmt.Sprintf("of %d executions %d completed, and %d are dead: those of which something is gone", s.enqueued, ended[sluice.StateCompleted], ended[sluice.StateDead]),
		},
		{started == s.enqueued, fmt.Sprintf("Temporal counts %d runs, one for each", started)},
		{runs == records.RunsCheck{}, fmt.Sprintf("every execution ran exactly once: %d completed without a run, %d ran more often, %d of the dead ran", runs.CompletedWithoutRun, runs.Several, runs.FailedWithRun)},
		{len(astray) == 0, fmt.Sprintf("every record says what became of its job: %d do not", len(astray))},
		{keys == want, fmt.Sprintf("the local server was called for %d executions, in %d calls", keys, calls)},
		{passed <= noisy.capacity, fmt.Sprintf("none that had a slot free was passed by the noisy workspace more than %d times, its capacity: at most %d times", noisy.capacity, passed)},
		{median(free) < median(noisy.waits), fmt.Sprintf("the quiet waits are small: a median of %s with a slot free, and %s for the noisy one", short(median(free)), short(median(noisy.waits)))},
	}
	gone, err := s.judgeLost(ctx, r)
	return errors.Join(err, tellVerdicts(s, append(verdicts, gone...)))
}

// verdict is a sentence, and whether it holds.
type verdict struct {
	holds bool
	text  string
}

// judgeLost looks whether the executions of which something is gone are dead for that reason.
func (s *show) judgeLost(ctx context.Context, r *replay) ([]verdict, error) {
	var all []verdict
	for _, workspace := range lost {
		job, err := s.stateOfLost(ctx, workspace)
		if err != nil {
			return nil, err
		}
		claimed, buried := r.claimed[workspace], r.buried[workspace]
		holds := job.State == sluice.StateDead && claimed == 1 && buried == 1 && strings.Contains(job.Error, graph.ErrGone.Error())
		all = append(all, verdict{holds, fmt.Sprintf("%s: claimed %d times, buried %d times, %s, %q", workspace, claimed, buried, job.State, job.Error)})
	}
	return all, nil
}

// errCheck: something does not hold.
var errCheck = errors.New("the check failed")

func tellVerdicts(s *show, verdicts []verdict) error {
	var failed error
	_, _ = fmt.Fprintln(s.out)
	for _, v := range verdicts {
		mark := "holds"
		if !v.holds {
			mark, failed = "FAILS", errCheck
		}
		_, _ = fmt.Fprintln(s.out, mark+" ", v.text)
	}
	return failed
}
