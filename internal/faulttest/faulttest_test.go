// Package faulttest breaks real things. It kills and stops worker processes, cuts connections at the worst moment,
// restarts the server and fills the disk. Then it checks that the books balance.
package faulttest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/demo"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// The environment of a worker process, which is this test program started again.
const (
	envRole  = "SLUICE_FAULTTEST_ROLE"
	envStore = "SLUICE_FAULTTEST_STORE"
	envQueue = "SLUICE_FAULTTEST_QUEUE"
)

var quiet = slog.New(slog.DiscardHandler)

func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		if err := runRole(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// These tests mostly wait, for processes and for leases. A flag on the command line wins.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	pgtest.Main(m)
}

// runRole is a worker process.
func runRole(role string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fmt.Println("ready")                                                  // from now on, the process handles an interrupt
	store, err := openAt(context.WithoutCancel(ctx), os.Getenv(envStore)) // a process that is interrupted now must end without an error
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	queue := os.Getenv(envQueue)
	switch role {
	case "reviewer":
		return runReviewer(ctx, store, queue)
	case "upkeep":
		return runUpkeep(ctx, store)
	case "forwarder":
		return runForwarder(ctx, store, queue)
	case "dying firer":
		return runDyingFirer(ctx, store)
	case "patient upkeep":
		return upkeep.New(store, upkeep.Options{Interval: patience, Logger: quiet}).Run(ctx)
	case "dying member":
		return runDyingMember(ctx, store, queue)
	case "dying advancer":
		return runDyingAdvancer(ctx, store, queue)
	case "dying upkeep":
		return runDyingUpkeep(ctx, store)
	case "starter":
		return runStarter(ctx, store, queue)
	case "dispatcher":
		return runDispatcher(ctx, store)
	case "following upkeep":
		return runFollowingUpkeep(ctx, store)
	case "dying flower":
		return runDyingFlower(ctx, store, queue)
	}
	ledger, err := demo.NewLedger(store)
	if err != nil {
		return err
	}
	switch role {
	case "poster":
		return demo.NewWorker(store, ledger, queue, 16, quiet).Run(ctx)
	case "suicide":
		w := worker.New(store, worker.Options{Slots: 1, Logger: quiet})
		worker.Handle(w, sluice.QueueOf[demo.Payment](queue), func(context.Context, *worker.Job[demo.Payment]) error {
			os.Exit(3) // a handler that uses up the memory dies like this
			return nil
		}, worker.QueueOptions{})
		return w.Run(ctx)
	}
	if version, isOf := strings.CutPrefix(role, "poster of "); isOf {
		return runPosterOf(ctx, store, ledger, queue, version)
	}
	if crowd, isCrowd := strings.CutPrefix(role, "crowd of "); isCrowd {
		return runCrowd(ctx, store, ledger, queue, crowd)
	}
	return fmt.Errorf("unknown role %q", role)
}

// runCrowd runs several workers in one process, each of which claims.
func runCrowd(ctx context.Context, store sluice.Store, ledger demo.Ledger, queue, crowd string) error {
	size, err := strconv.Atoi(crowd)
	if err != nil {
		return err
	}
	ended := make(chan error, size)
	for range size {
		go func() { ended <- demo.NewWorker(store, ledger, queue, 4, quiet).Run(ctx) }()
	}
	for range size {
		err = errors.Join(err, <-ended)
	}
	return err
}

func openAt(ctx context.Context, address string) (sluice.Store, error) {
	if path, isFile := strings.CutPrefix(address, "sqlite:"); isFile {
		return sqlite.Open(ctx, path, sqlite.Options{Migrate: true})
	}
	return postgres.Open(ctx, address, postgres.Options{Migrate: true, Logger: quiet})
}

// addresses returns the address of a new store of each kind that several processes can share.
func addresses(t *testing.T) map[string]string {
	return map[string]string{
		"SQLite, processes on one file": "sqlite:" + filepath.Join(t.TempDir(), "sluice.db"),
		"PostgreSQL":                    pgtest.NewDatabase(t),
	}
}

// bank is a store, a ledger beside it, and worker processes that post payments.
type bank struct {
	*testing.T
	address string
	queue   string
	env     []string // more environment variables for worker processes
	store   sluice.Store
	client  *sluice.Client
	ledger  demo.Ledger
	acked   int
	seq     int
}

func newBank(t *testing.T, address string) *bank {
	t.Helper()
	store, err := openAt(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	b := &bank{T: t, address: address, queue: "payments", store: store, client: sluice.NewClient(store, sluice.ClientOptions{})}
	if b.ledger, err = demo.NewLedger(store); err != nil {
		t.Fatal(err)
	}
	if err := b.ledger.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	settings := demo.Settings()
	settings.Lease, settings.RecoverInterval = time.Second, 200*time.Millisecond
	settings.MaxRecoveries, settings.MaxAttempts = 10_000, 10_000
	if _, err := b.client.EnsureQueue(t.Context(), b.queue, settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	return b
}

// tend lets upkeep run until the test ends.
func (b *bank) tend() {
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = upkeep.New(b.store, upkeep.Options{Interval: 100 * time.Millisecond, Logger: quiet}).Run(ctx)
	}()
	b.Cleanup(func() {
		cancel()
		<-ended
	})
}

// pay enqueues payments to a bank that accepts them.
func (b *bank) pay(n int) error { return b.payVia(n, func() string { return demo.BankWell }) }

// payVia enqueues payments through banks, and counts the payments once the store has acknowledged them.
func (b *bank) payVia(n int, bankOf func() string) error {
	jobs := make([]sluice.NewJob, n)
	for i := range jobs {
		b.seq++
		payment := demo.Payment{ID: fmt.Sprintf("pay-%06d", b.seq), Payer: "a", Payee: "b", Cents: int64(b.seq), Bank: bankOf()}
		var err error
		if jobs[i], err = sluice.QueueOf[demo.Payment](b.queue).NewJob(payment, sluice.EnqueueOptions{Key: payment.ID}); err != nil {
			return err
		}
	}
	if _, err := b.client.EnqueueMany(b.Context(), jobs); err != nil {
		b.seq -= n // payments that the store did not acknowledge are sent again under the same IDs
		return err
	}
	b.acked += n
	return nil
}

// spawn starts a worker process.
func (b *bank) spawn(role string) *exec.Cmd {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), append(b.env, envRole+"="+role, envStore+"="+b.address, envQueue+"="+b.queue)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		b.Fatalf("the worker process did not start: %v", err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// settled waits until every payment has ended.
func (b *bank) settled() {
	b.Helper()
	b.settledOr(nil)
}

// settledOr waits until every payment has ended, or until the process ends. It reports whether the payments ended
// first.
func (b *bank) settledOr(ended <-chan struct{}) (settled bool) {
	b.Helper()
	for deadline := time.Now().Add(10 * time.Minute); ; {
		depth, err := b.store.Depth(b.Context(), b.queue, sluice.DepthLimit)
		if err == nil && depth.Ready+depth.Scheduled+depth.Claimed+depth.Blocked == 0 {
			return true
		}
		if time.Now().After(deadline) {
			b.Fatalf("not settled after ten minutes: %+v, %v", depth, err)
		}
		select {
		case <-ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// balance checks that every acknowledged payment was posted exactly once.
func (b *bank) balance() demo.Check {
	b.Helper()
	check, err := b.ledger.Check(b.Context(), b.queue)
	if err != nil {
		b.Fatal(err)
	}
	if !check.Holds() || check.Payments != b.acked || check.Posted != b.acked {
		b.Fatalf("%d payments were acknowledged; the books say %+v", b.acked, check)
	}
	return check
}

// signalTo sends a signal to a worker process.
func signalTo(t *testing.T, cmd *exec.Cmd, s syscall.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}
