// Package crashtest kills dispatchers at every step of a dispatch, and cuts them off from a real Temporal server. Then
// it counts the runs in Temporal: there must be one for each job.
package crashtest

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/temporal"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/internal/temporaltest"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/upkeep"
)

// The environment tells this test program to be a dispatcher process.
const (
	envStep   = "SLUICE_CRASHTEST_STEP"
	envStore  = "SLUICE_CRASHTEST_STORE"
	envEngine = "SLUICE_CRASHTEST_ENGINE"
)

// queue is the queue of every store; its workflow type is Pay.
const queue = "payment"

var quiet = slog.New(slog.DiscardHandler)

func TestMain(m *testing.M) {
	if step := os.Getenv(envStep); step != "" {
		run := runDispatcher
		if step == upkeeping || step == upkeepingBare {
			run = runUpkeep
		}
		if err := run(step); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// These tests mostly wait for processes and leases. A flag on the command line wins.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	pgtest.Main(m)
}

// runDispatcher runs in a dispatcher process that dies at a step.
func runDispatcher(step string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fmt.Println("ready")
	store, err := openAt(ctx, os.Getenv(envStore))
	if err != nil {
		return err
	}
	runner, err := dial()
	if err != nil {
		return err
	}
	d := dispatcher.New(dyingStore{store, step}, dispatcher.Options{
		Engines: map[string]engine.Engine{"temporal": dyingEngine{runner, step}}, Batch: 10, Poll: 50 * time.Millisecond, Probe: 200 * time.Millisecond, Logger: quiet,
	})
	return d.Run(ctx)
}

func openAt(ctx context.Context, address string) (sluice.Store, error) {
	if path, isFile := strings.CutPrefix(address, "sqlite:"); isFile {
		return sqlite.Open(ctx, path, sqlite.Options{Migrate: true})
	}
	return postgres.Open(ctx, address, postgres.Options{Migrate: true, Logger: quiet})
}

// addresses returns the addresses of new stores, one for each kind that several processes can share.
func addresses(t *testing.T) map[string]string {
	return map[string]string{
		"SQLite":     "sqlite:" + filepath.Join(t.TempDir(), "sluice.db"),
		"PostgreSQL": pgtest.NewDatabase(t),
	}
}

// bank is a store, a Temporal server, and a worker of its workflows.
type bank struct {
	*testing.T
	address string
	engine  string // the server's address for dispatcher processes
	store   sluice.Store
	client  *sluice.Client
	server  client.Client
	runType string // only this bank has it
	jobs    []sluice.ID

	mu    sync.Mutex
	begun map[string]map[string]bool // the runs of each workflow id
}

// newBank makes a bank on the Temporal server that the tests share.
func newBank(t *testing.T, address string) *bank {
	t.Helper()
	return newBankAt(t, address, temporaltest.Address(t))
}

func newBankAt(t *testing.T, address, engine string) *bank {
	t.Helper()
	b := &bank{T: t, address: address, engine: engine, runType: "Pay-" + sluice.NewID().String(), begun: make(map[string]map[string]bool)}
	var err error
	if b.store, err = openAt(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.store.Close() })
	b.client = sluice.NewClient(b.store, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.Engine, settings.RunType, settings.RunTaskQueue, settings.Audit = "temporal", b.runType, b.runType, sluice.AuditFull
	settings.Lease, settings.RecoverInterval, settings.FollowInterval = time.Second, 200*time.Millisecond, 200*time.Millisecond
	settings.MaxRecoveries = 10_000
	if _, err := b.client.EnsureQueue(t.Context(), queue, settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	b.pay()
	return b
}

// pay starts a worker for workflows of the bank's type, and notes their runs. A run may begin again after the reply of
// its worker was lost.
func (b *bank) pay() {
	var err error
	b.server, err = client.Dial(client.Options{HostPort: b.engine, Logger: sdklog.NewStructuredLogger(quiet)})
	if err != nil {
		b.Fatal(err)
	}
	w := sdkworker.New(b.server, b.runType, sdkworker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ int) error {
		if !workflow.IsReplaying(ctx) {
			b.mu.Lock()
			run := workflow.GetInfo(ctx).WorkflowExecution
			if b.begun[run.ID] == nil {
				b.begun[run.ID] = make(map[string]bool)
			}
			b.begun[run.ID][run.RunID] = true
			b.mu.Unlock()
		}
		return nil
	}, workflow.RegisterOptions{Name: b.runType})
	if err := w.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		w.Stop()
		b.server.Close()
	})
}

// set changes settings of the queue.
func (b *bank) set(change func(*sluice.Settings)) {
	b.Helper()
	_, err := b.client.ChangeSettings(b.Context(), queue, sluice.Act{By: "test"}, func(s *sluice.Settings) error {
		change(s)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bank) enqueue(n int) {
	b.Helper()
	jobs := make([]sluice.NewJob, n)
	for i := range jobs {
		jobs[i] = sluice.NewJob{Queue: queue, Payload: []byte(fmt.Sprint(len(b.jobs) + i))}
	}
	receipts, err := b.client.EnqueueMany(b.Context(), jobs)
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range receipts {
		b.jobs = append(b.jobs, r.ID)
	}
}

// spawn starts a dispatcher process that dies at a step.
func (b *bank) spawn(step string) *exec.Cmd {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), envStep+"="+step, envStore+"="+b.address, envEngine+"="+b.engine)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		b.Fatalf("the dispatcher process did not start: %v", err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// tend runs an upkeep until the test ends. Its connection to the server goes around the wire that cuts those of
// dispatchers.
func (b *bank) tend() {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	engines := map[string]engine.Engine{"temporal": temporal.New(b.server, temporal.Options{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = upkeep.New(b.store, upkeep.Options{Interval: 100 * time.Millisecond, Engines: engines, Logger: quiet}).Run(ctx)
	}()
	b.Cleanup(func() {
		cancel()
		<-ended
	})
}

// settled waits until every job is completed.
func (b *bank) settled() {
	b.Helper()
	b.moves(func() (left int, state any) {
		depth, err := b.store.Depth(b.Context(), queue, sluice.DepthLimit)
		if err != nil { // the store is busy
			return -1, err
		}
		return depth.Ready + depth.Scheduled + depth.Claimed + depth.Blocked + depth.Dispatched, depth
	})
}

// moves waits until no jobs are left. It fails when their number has not changed for ten minutes: on a busy machine all of
// them may take longer.
func (b *bank) moves(look func() (left int, state any)) {
	b.Helper()
	before, since := -1, time.Now()
	for ; ; time.Sleep(50 * time.Millisecond) {
		left, state := look()
		switch {
		case left == 0:
			return
		case left != before && left > 0:
			before, since = left, time.Now()
		case time.Since(since) > 10*time.Minute:
			b.Fatalf("for ten minutes no job was settled: %+v", state)
		}
	}
}

// onceEach checks that one run completed each job, that no job has lost an attempt, and that Temporal has no other run.
func (b *bank) onceEach() {
	b.Helper()
	refs := make(map[string]bool)
	for _, id := range b.jobs {
		job, err := b.client.Job(b.Context(), id)
		if err != nil {
			b.Fatal(err)
		}
		if job.State != sluice.StateCompleted || job.Attempts != 0 {
			b.Errorf("job %s is %s after %d attempts: %s", id, job.State, job.Attempts, job.Error)
		}
		refs[job.Ref] = true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for ref, runs := range b.begun {
		if len(runs) != 1 || !refs[ref] {
			b.Errorf("%s had %d runs", ref, len(runs))
		}
	}
	if len(b.begun) != len(b.jobs) {
		b.Errorf("%d runs began for %d jobs", len(b.begun), len(b.jobs))
	}
	b.counted(int64(len(b.jobs)))
}

// counted checks that Temporal has a number of runs, after its list has caught up.
func (b *bank) counted(want int64) {
	b.Helper()
	var got int64
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		answer, err := b.server.CountWorkflow(b.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowType = '%s'", b.runType)})
		if err != nil {
			b.Fatal(err)
		}
		if got = answer.Count; got >= want {
			break
		}
	}
	if got != want {
		b.Errorf("Temporal has %d runs, want %d", got, want)
	}
}
