package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/demo"
	"github.com/sluice-queue/sluice/upkeep"
)

// demoFlags are the options of «demo».
type demoFlags struct {
	file, folder      string
	payments, tenants int
	seed              uint64
	slots             int
	kill, json        bool
	dueIn             time.Duration
}

// demoSummary is what the demo found.
type demoSummary struct {
	Store          string     `json:"store"`
	File           string     `json:"file"`
	Queue          string     `json:"queue"`
	Check          demo.Check `json:"check"`
	Holds          bool       `json:"holds"`
	EnqueueSeconds float64    `json:"enqueue_seconds"`
	PostSeconds    float64    `json:"post_seconds"`
	Killed         int        `json:"workers_killed"`
}

func (a *app) demoCommand() *cobra.Command {
	var f demoFlags
	command := &cobra.Command{
		Use:   "demo",
		Short: "See it work: a wave of payments that all fall due in the same second",
		Long: `Writes a file of payments that all fall due in the same second, enqueues them, and runs them through
workers that post each payment into a ledger in the transaction that completes its job. Some banks time
out, some accounts are closed. At the end SQL checks that every payment was posted exactly once, or is
dead with its reason, and that the money adds up. Exit code 0 only if it does.

Without --db it uses a new SQLite file in a new folder, which it names.`,
		Example: "  sluice demo\n  sluice demo --kill\n  sluice demo --db postgres://localhost/demo --payments 100000\n  sluice demo --file wave.jsonl --json",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return a.demo(command.Context(), f)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.file, "file", "", "a file of payments to use instead of making one up")
	flags.StringVar(&f.folder, "dir", "", "the folder for the files (default: a new one for temporary files)")
	flags.IntVar(&f.payments, "payments", 20_000, "how many payments to make up")
	flags.IntVar(&f.tenants, "tenants", 300, "of how many tenants")
	flags.Uint64Var(&f.seed, "seed", 1, "makes the same payments again")
	flags.IntVar(&f.slots, "slots", 64, "how many handlers run at once in a worker")
	flags.DurationVar(&f.dueIn, "due-in", 3*time.Second, "when the payments fall due, counted from now")
	flags.BoolVar(&f.kill, "kill", false, "run the workers as processes, and kill one in the middle (SIGKILL)")
	flags.BoolVar(&f.json, "json", false, "print the summary for machines")
	return command
}

func (a *app) demo(ctx context.Context, f demoFlags) error {
	if f.payments < 1 || f.tenants < 1 || f.slots < 1 {
		return usagef("--payments, --tenants and --slots must be at least 1")
	}
	if err := a.placeDemo(&f); err != nil {
		return err
	}
	a.migrate = true
	store, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.close(store)
	ledger, err := demo.NewLedger(store)
	if err != nil {
		return err
	}
	if err := ledger.Prepare(ctx); err != nil {
		return fmt.Errorf("make the ledger: %w", err)
	}
	d := &demoRun{
		app: a, flags: f, store: store, client: a.client(store), ledger: ledger,
		summary: demoSummary{Store: redactURL(a.db), File: f.file, Queue: "payments-" + time.Now().UTC().Format("20060102-150405.000")},
	}
	if err := d.run(ctx); err != nil {
		return err
	}
	if f.json {
		a.output = "json"
	}
	if err := a.printOne(d.summary, d.print); err != nil {
		return err
	}
	if !d.summary.Holds {
		return codedError{errors.New("the books do not balance"), exitCheckFailed, "this is a bug; keep the database and report it"}
	}
	return nil
}

// placeDemo says where the files go, and writes the wave unless one was given.
func (a *app) placeDemo(f *demoFlags) error {
	if a.db == "" || f.file == "" {
		if f.folder == "" {
			folder, err := os.MkdirTemp("", "sluice-demo-")
			if err != nil {
				return err
			}
			f.folder = folder
		} else if err := os.MkdirAll(f.folder, 0o755); err != nil {
			return err
		}
	}
	if a.db == "" {
		a.db = "sqlite:" + filepath.Join(f.folder, "demo.db")
	}
	if f.file != "" {
		return nil
	}
	f.file = filepath.Join(f.folder, "wave.jsonl")
	file, err := os.Create(f.file)
	if err != nil {
		return err
	}
	due := time.Now().Add(f.dueIn).Truncate(time.Second).Add(time.Second)
	err = demo.Wave{Payments: f.payments, Tenants: f.tenants, Seed: f.seed, DueAt: due}.Write(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", f.file, err)
	}
	a.note("%s payments of %d tenants, all due at %s: %s", count(f.payments), f.tenants, due.Format("15:04:05"), f.file)
	return nil
}

// demoRun is one run of the demo.
type demoRun struct {
	*app
	flags   demoFlags
	store   sluice.Store
	client  *sluice.Client
	ledger  demo.Ledger
	summary demoSummary
}

func (d *demoRun) run(ctx context.Context) error {
	d.note("store: %s, queue: %s", d.summary.Store, d.summary.Queue)
	if _, err := d.client.EnsureQueue(ctx, d.summary.Queue, demo.Settings(), d.act("demo")); err != nil {
		return err
	}
	stored, err := d.enqueue(ctx)
	if err != nil {
		return err
	}
	logger := slog.New(slog.DiscardHandler)
	tending, stopTending := context.WithCancel(ctx)
	var tended sync.WaitGroup
	tended.Go(func() {
		_ = upkeep.New(d.store, upkeep.Options{Interval: 250 * time.Millisecond, Logger: logger}).Run(tending)
	})
	defer tended.Wait()
	defer stopTending()
	var crew crew = &crewInside{run: d, logger: logger}
	if d.flags.kill {
		crew = &crewOutside{run: d}
	}
	begun := time.Now()
	if err := crew.start(ctx); err != nil {
		return err
	}
	watchErr := d.watch(ctx, stored, crew)
	d.summary.PostSeconds = time.Since(begun).Seconds()
	if err := errors.Join(watchErr, crew.stop()); err != nil {
		return err
	}
	if d.summary.Check, err = d.ledger.Check(ctx, d.summary.Queue); err != nil {
		return fmt.Errorf("check the books: %w", err)
	}
	d.summary.Holds = d.summary.Check.Holds() && d.summary.Check.Payments == stored
	return nil
}

// enqueue puts the file in, and gives how many payments are stored.
func (d *demoRun) enqueue(ctx context.Context) (int, error) {
	file, err := os.Open(d.flags.file)
	if err != nil {
		return 0, usagef("%w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	out, err := d.enqueueLines(ctx, d.client, file, info.Size(), d.summary.Queue, enqueueFlags{batch: 1000})
	d.summary.EnqueueSeconds = time.Since(begun).Seconds()
	if err == nil && out.Refused > 0 {
		err = fmt.Errorf("%d lines of %s were refused", out.Refused, d.flags.file)
	}
	return out.Stored, err
}

// watch shows how far the wave has come until every payment is posted or dead.
func (d *demoRun) watch(ctx context.Context, total int, crew crew) error {
	bar := d.newProgress("Posting", total)
	for {
		depth, err := d.store.Depth(ctx, d.summary.Queue)
		if err != nil {
			return err
		}
		left := depth.Ready + depth.Scheduled + depth.Blocked + depth.Claimed
		done := max(total-left, 0)
		status := fmt.Sprintf("queued %s  running %s  retrying %s  dead %s", count(depth.Ready), count(depth.Claimed), count(depth.Scheduled), count(depth.Dead))
		if done == 0 && depth.Scheduled == total {
			bar.begun = time.Now() // the rate counts from when they fall due
			status = "all wait until they are due"
		}
		if left == 0 {
			bar.end(done, status)
			return nil
		}
		bar.set(done, status)
		if err := crew.progress(ctx, done, total); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// crew are the workers of the demo.
type crew interface {
	start(ctx context.Context) error
	// progress is told how far the wave has come.
	progress(ctx context.Context, done, total int) error
	stop() error
}

// crewInside is a worker of this process.
type crewInside struct {
	run    *demoRun
	logger *slog.Logger
	ended  chan error
	end    context.CancelFunc
}

func (c *crewInside) start(ctx context.Context) error {
	ctx, c.end = context.WithCancel(ctx)
	c.ended = make(chan error, 1)
	w := demo.NewWorker(c.run.store, c.run.ledger, c.run.summary.Queue, c.run.flags.slots, c.logger)
	go func() { c.ended <- w.Run(ctx) }()
	return nil
}

func (c *crewInside) progress(context.Context, int, int) error {
	select {
	case err := <-c.ended:
		return fmt.Errorf("the worker ended: %w", err)
	default:
		return nil
	}
}

func (c *crewInside) stop() error {
	c.end()
	return <-c.ended
}

// crewOutside is two worker processes, one of which is killed in the middle and replaced.
type crewOutside struct {
	run       *demoRun
	processes []*exec.Cmd
}

func (c *crewOutside) start(ctx context.Context) error {
	for range 2 {
		if err := c.spawn(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *crewOutside) spawn(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, "demo-worker", "--queue", c.run.summary.Queue, "--slots", fmt.Sprint(c.run.flags.slots))
	cmd.Env = append(os.Environ(), "SLUICE_DB="+c.run.db)
	cmd.Stderr = c.run.stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a worker process: %w", err)
	}
	c.processes = append(c.processes, cmd)
	return nil
}

// progress kills a worker when two fifths are done.
func (c *crewOutside) progress(ctx context.Context, done, total int) error {
	if c.run.summary.Killed > 0 || done < total*2/5 {
		return nil
	}
	victim := c.processes[0]
	if err := victim.Process.Kill(); err != nil {
		return err
	}
	_ = victim.Wait() // it was killed
	c.run.summary.Killed++
	c.run.note("\nkilled worker process %d (SIGKILL) with %s of %s done; another takes its place", victim.Process.Pid, count(done), count(total))
	c.processes = c.processes[1:]
	return c.spawn(ctx)
}

func (c *crewOutside) stop() error {
	var errs []error
	for _, process := range c.processes {
		errs = append(errs, process.Process.Signal(os.Interrupt), process.Wait())
	}
	return errors.Join(errs...)
}

// demoWorkerCommand is what a worker process of «demo --kill» runs.
func (a *app) demoWorkerCommand() *cobra.Command {
	var queue string
	var slots int
	command := &cobra.Command{
		Use:    "demo-worker",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			store, err := a.open(command.Context())
			if err != nil {
				return err
			}
			defer a.close(store)
			ledger, err := demo.NewLedger(store)
			if err != nil {
				return err
			}
			return demo.NewWorker(store, ledger, queue, slots, slog.New(slog.DiscardHandler)).Run(command.Context())
		},
	}
	command.Flags().StringVar(&queue, "queue", "", "")
	command.Flags().IntVar(&slots, "slots", 64, "")
	return command
}

// print tells what happened, and whether the books balance.
func (d *demoRun) print() error {
	c, s := d.summary.Check, d.summary
	type row struct{ name, value, note string }
	rows := []row{
		{"payments enqueued", count(c.Payments), fmt.Sprintf("in %.1f s, %s/s", s.EnqueueSeconds, count(int(float64(c.Payments)/max(s.EnqueueSeconds, 0.001))))},
		{"posted", count(c.Posted), money(c.CentsPosted)},
		{"dead", count(c.Dead), money(c.CentsDead)},
		{"failed attempts", count(c.FailedAttempts), ""},
		{"recovered", count(c.Recoveries), fmt.Sprintf("after %d killed workers", s.Killed)},
		{"posted twice", count(c.Doubled), ""},
		{"lost", count(c.Unposted + c.Unfinished), ""},
	}
	if err := printTable(d.app, rows, []column[row]{
		{"WHAT", func(r row) string { return r.name }, false},
		{"COUNT", func(r row) string { return r.value }, true},
		{"", func(r row) string { return r.note }, false},
	}); err != nil {
		return err
	}
	if len(c.Reasons) > 0 {
		fmt.Fprintln(d.stdout)
		if err := printTable(d.app, c.Reasons, []column[demo.Reason]{
			{"DEAD BECAUSE", func(r demo.Reason) string { return r.Error }, false},
			{"COUNT", func(r demo.Reason) string { return count(r.Count) }, true},
		}); err != nil {
			return err
		}
	}
	verdict := "✔ every payment was posted exactly once, or is dead with its reason, and the money adds up"
	if !s.Holds {
		verdict = fmt.Sprintf("✖ the books do not balance: %+v", c)
	}
	_, err := fmt.Fprintf(d.stdout, "\n%s\n  %s in all = %s posted + %s dead; the entries of the ledger sum to %s\n  look yourself: sluice queues --db %s\n",
		verdict, money(c.Cents), money(c.CentsPosted), money(c.CentsDead), money(c.Balance), s.Store)
	return err
}

func money(cents int64) string {
	return fmt.Sprintf("%s.%02d EUR", count(int(cents/100)), cents%100)
}
