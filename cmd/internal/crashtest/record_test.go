package crashtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/temporal"
	"github.com/sluice-queue/sluice/upkeep"
)

var recordTime = flag.Duration("record", 10*time.Second, "how long the run is that is proved by Temporal's record")

const (
	// upkeeping is the step of a process that runs an upkeep instead of a dispatcher; upkeepingBare is that of an
	// upkeep without an engine.
	upkeeping     = "upkeep"
	upkeepingBare = "upkeep without an engine"
	// recordCapacity is the number of runs that a tenant may have open, and recordInFlight that of the queue.
	recordCapacity = 2
	recordInFlight = 5
	// lateStart is the time after which a recorded intent can no longer become a run. In this test a lease is 1 s, and
	// a call takes at most 2 s.
	lateStart = 6 * time.Second
)

// runUpkeep runs in an upkeep process.
func runUpkeep(step string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fmt.Println("ready")
	store, err := openAt(ctx, os.Getenv(envStore))
	if err != nil {
		return err
	}
	options := upkeep.Options{Interval: 100 * time.Millisecond, Logger: quiet}
	if step == upkeeping {
		runner, err := dial()
		if err != nil {
			return err
		}
		options.Engines = map[string]engine.Engine{"temporal": runner}
	}
	return upkeep.New(store, options).Run(ctx)
}

// dial opens the engine of a process.
func dial() (engine.Engine, error) {
	return temporal.Dial(temporal.Server{Address: os.Getenv(envEngine)}, temporal.Options{Timeout: 2 * time.Second})
}

// TestRecordOfTemporalHasOneRunOfAJobAtATime works for a while, and disturbs the work in many ways. It kills
// dispatchers and upkeeps and cuts connections at random moments. It cancels, requeues, pauses and terminates, and some
// workflows ignore their cancel. Then it reads Temporal's own record. Two runs of a job were never open at once.
// Neither a tenant nor the queue had more open runs than its limit. Every job has ended.
func TestRecordOfTemporalHasOneRunOfAJobAtATime(t *testing.T) {
	for name, address := range addresses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRecord(t, address)
			r.disturb(*recordTime)
			r.finish()
			r.prove()
		})
	}
}

// record is a bank whose runs last a while.
type record struct {
	*bank
	random  *rand.Rand
	wire    *wire
	workers []*exec.Cmd // two dispatchers, and three upkeeps, of which one has no engine
	steps   []string
	tenants map[sluice.ID]string
	done    map[string]int // how often the test did each thing
}

func newRecord(t *testing.T, address string) *record {
	t.Helper()
	r := &record{
		bank: newBank(t, address), random: rand.New(rand.NewPCG(seed(t), 0)), tenants: make(map[sluice.ID]string), done: make(map[string]int),
	}
	r.runType = "Long-" + sluice.NewID().String()
	w := sdkworker.New(r.server, r.runType, sdkworker.Options{})
	w.RegisterWorkflowWithOptions(take, workflow.RegisterOptions{Name: r.runType})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	r.set(func(s *sluice.Settings) {
		s.RunType, s.RunTaskQueue, s.TenantConcurrency, s.Concurrency = r.runType, r.runType, recordCapacity, recordInFlight
	})
	r.wire = newWire(t, r.engine)
	r.engine = r.wire.address
	r.steps = []string{never, never, upkeepingBare, upkeeping, upkeeping}
	for _, step := range r.steps {
		r.workers = append(r.workers, r.spawn(step))
	}
	return r
}

// take is a workflow that sleeps. Its payload decides how long, and whether it ends on a cancel.
func take(ctx workflow.Context, n int) error {
	if n%3 > 0 {
		var cancel workflow.CancelFunc
		ctx, cancel = workflow.NewDisconnectedContext(ctx)
		defer cancel()
	}
	return workflow.Sleep(ctx, time.Duration([]int{300, 100, 1500}[n%3])*time.Millisecond)
}

// disturb does random things at random moments.
func (r *record) disturb(while time.Duration) {
	deeds := []struct {
		name   string
		weight int
		do     func()
	}{
		{"enqueue", 30, r.enqueueSome},
		{"cancel", 25, func() { r.act(r.client.Cancel, sluice.StateDispatched) }},
		{"requeue", 30, func() { r.act(r.client.Requeue, sluice.StateCancelled) }},
		{"terminate", 5, func() { r.act(r.client.Terminate, sluice.StateCancelled) }},
		{"pause", 3, func() { r.set(func(s *sluice.Settings) { s.Paused = !s.Paused }) }},
		{"kill", 5, r.kill},
		{"cut", 5, r.wire.cut},
	}
	for begun := time.Now(); time.Since(begun) < while; {
		lot := r.random.IntN(103)
		for _, deed := range deeds {
			if lot -= deed.weight; lot < 0 {
				deed.do()
				r.done[deed.name]++
				break
			}
		}
		r.forgetUnstarted()
		time.Sleep(time.Duration(r.random.IntN(60)) * time.Millisecond)
	}
	r.Logf("done: %v", r.done)
}

func (r *record) enqueueSome() {
	tenant := string(rune('a' + r.random.IntN(3)))
	receipt, err := r.client.Enqueue(r.Context(), sluice.NewJob{
		Queue: queue, Payload: fmt.Append(nil, r.random.IntN(300)), EnqueueOptions: sluice.EnqueueOptions{Tenant: tenant},
	})
	if err != nil {
		r.Fatal(err)
	}
	r.jobs = append(r.jobs, receipt.ID)
	r.tenants[receipt.ID] = tenant
}

// act does an act to one of the last jobs, mostly to one whose run may still be open. The store may refuse the act.
func (r *record) act(do func(context.Context, []sluice.ID, sluice.Act) error, state sluice.State) {
	if len(r.jobs) == 0 {
		return
	}
	last := r.jobs[max(0, len(r.jobs)-12):]
	id := last[r.random.IntN(len(last))]
	if r.random.IntN(4) > 0 {
		page, err := r.client.Jobs(r.Context(), sluice.JobFilter{Queue: queue, States: []sluice.State{state}, Limit: 20})
		if err != nil {
			r.Fatal(err)
		}
		ran := slices.DeleteFunc(page.Jobs, func(j sluice.Job) bool { return j.Ref == "" })
		if len(ran) > 0 {
			id = ran[r.random.IntN(len(ran))].ID
		}
	}
	err := do(r.Context(), []sluice.ID{id}, sluice.Act{By: "test", Reason: "at random"})
	if err != nil && !errors.Is(err, sluice.ErrNotAllowed) {
		r.Fatal(err)
	}
}

func (r *record) kill() {
	i := r.random.IntN(len(r.workers))
	if err := r.workers[i].Process.Signal(syscall.SIGKILL); err != nil {
		r.Fatal(err)
	}
	_ = r.workers[i].Wait() // ends by SIGKILL
	r.workers[i] = r.spawn(r.steps[i])
}

// forgetUnstarted resolves runs that were never started, as a person may. Upkeep would wait 10 min for their start.
func (r *record) forgetUnstarted() {
	runs, err := engine.Given(r.store).OrphanRuns(r.Context(), queue, engine.OrphanRun{}, 100)
	if err != nil {
		r.Fatal(err)
	}
	for _, run := range runs {
		if run.Started || time.Since(run.CancelledAt) < lateStart {
			continue
		}
		outcomes, err := temporal.New(r.server, temporal.Options{}).Outcomes(r.Context(), engine.Target{Queue: queue, Type: r.runType}, []string{run.Ref})
		if err != nil {
			r.Fatal(err)
		}
		if outcomes[0].State == engine.Absent {
			if err := engine.Given(r.store).ForgetOrphanRuns(r.Context(), []engine.OrphanRun{run}); err != nil {
				r.Fatal(err)
			}
		}
	}
}

// finish resumes the queue, and waits until every job has ended.
func (r *record) finish() {
	r.set(func(s *sluice.Settings) { s.Paused = false })
	r.moves(func() (left int, state any) {
		r.forgetUnstarted()
		depth, err := r.store.Depth(r.Context(), queue, sluice.DepthLimit)
		if err != nil {
			r.Fatal(err)
		}
		return depth.Ready + depth.Scheduled + depth.Blocked + depth.InFlight(), depth
	})
}

// span is a run in Temporal's record.
type span struct {
	ref        string
	job        sluice.ID
	start, end time.Time
}

var refPattern = regexp.MustCompile(`^` + queue + `-([0-9a-f-]{36})`)

// spans reads all runs from Temporal's list, after the list has caught up. It asks again when a busy server misses a
// deadline.
func (b *bank) spans() (out []span) {
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		out = nil
		open := 0
		request := &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowType = '%s'", b.runType), PageSize: 1000}
		for {
			page, err := b.server.ListWorkflow(b.Context(), request)
			var late *serviceerror.DeadlineExceeded
			if (errors.As(err, &late) || errors.Is(err, context.DeadlineExceeded)) && time.Now().Before(deadline) {
				continue
			}
			if err != nil {
				b.Fatal(err)
			}
			for _, run := range page.GetExecutions() {
				found := refPattern.FindStringSubmatch(run.GetExecution().GetWorkflowId())
				if found == nil {
					b.Fatalf("run %q is of no job", run.GetExecution().GetWorkflowId())
				}
				job, err := sluice.ParseID(found[1])
				if err != nil {
					b.Fatal(err)
				}
				if run.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
					open++
				}
				out = append(out, span{run.GetExecution().GetWorkflowId(), job, run.GetStartTime().AsTime(), run.GetCloseTime().AsTime()})
			}
			if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
				break
			}
		}
		if open == 0 {
			return out
		}
		if time.Now().After(deadline) {
			b.Fatalf("%d runs are open although every job has ended", open)
		}
	}
}

// prove checks the record.
func (r *record) prove() {
	runs := r.spans()
	byJob, byTenant := make(map[sluice.ID][]span), make(map[string][]span)
	for _, run := range runs {
		byJob[run.job] = append(byJob[run.job], run)
		byTenant[r.tenants[run.job]] = append(byTenant[r.tenants[run.job]], run)
	}
	again := 0
	for id, of := range byJob {
		if len(of) > 1 {
			again++
		}
		if most, at := openAtOnce(of); most > 1 {
			r.Errorf("job %s had %d runs open at %s: %+v", id, most, at, of)
		}
	}
	for tenant, of := range byTenant {
		if most, at := openAtOnce(of); most > recordCapacity {
			r.Errorf("tenant %s had %d runs open at %s, and may have %d", tenant, most, at, recordCapacity)
		}
	}
	if most, at := openAtOnce(runs); most > recordInFlight {
		r.Errorf("%d runs were open at %s, and %d may be", most, at, recordInFlight)
	}
	for _, id := range r.jobs {
		job, err := r.client.Job(r.Context(), id)
		if err != nil {
			r.Fatal(err)
		}
		if !job.State.Finished() {
			r.Errorf("job %s is %s", id, job.State)
		}
		if job.State == sluice.StateCompleted && !slices.ContainsFunc(byJob[id], func(s span) bool { return s.ref == job.Ref }) {
			r.Errorf("job %s is completed, and Temporal has no run %q", id, strings.TrimSpace(job.Ref))
		}
	}
	r.Logf("%d jobs had %d runs, %d of them more than one", len(r.jobs), len(runs), again)
}

// openAtOnce returns the highest number of runs that were open at once, and when. It uses Temporal's clock alone.
func openAtOnce(runs []span) (most int, at time.Time) {
	type turn struct {
		at time.Time
		by int
	}
	var turns []turn
	for _, run := range runs {
		turns = append(turns, turn{run.start, 1}, turn{run.end, -1})
	}
	slices.SortFunc(turns, func(a, b turn) int {
		if order := a.at.Compare(b.at); order != 0 {
			return order
		}
		return a.by - b.by
	})
	open := 0
	for _, t := range turns {
		if open += t.by; open > most {
			most, at = open, t.at
		}
	}
	return most, at
}
