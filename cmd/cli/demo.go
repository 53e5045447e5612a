package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/internal/demo"
)

// demoFlags are the options of `demo`.
type demoFlags struct {
	file, folder      string
	payments, tenants int
	seed              uint64
	slots             int
	rate              sluice.Rate
	tiers             bool
	kill, json        bool
	dueIn             time.Duration
	dueAt             time.Time // of a given file's payments; zero: the file's own times
	gone              bool      // the store is removed at the end
	console           bool
	listen            string
}

// demoSummary is the result of the demo.
type demoSummary struct {
	Store          string      `json:"store"`
	File           string      `json:"file"`
	Queue          string      `json:"queue"`
	Check          demo.Check  `json:"check"`
	Holds          bool        `json:"holds"`
	Refused        int         `json:"lines_refused"`
	Duplicates     int         `json:"lines_duplicate"`
	EnqueueSeconds float64     `json:"enqueue_seconds"`
	PostSeconds    float64     `json:"post_seconds"`
	Killed         int         `json:"workers_killed"`
	Pace           *demo.Pace  `json:"pace,omitempty"`  // with --rate
	Tiers          []demo.Tier `json:"tiers,omitempty"` // with --tiers
}

func (a *app) demoCommand() *cobra.Command {
	var f demoFlags
	command := &cobra.Command{
		Use:   "demo",
		Short: "See Sluice work: payments that all fall due in the same second",
		Long: `Enqueues payments that all fall due in the same second. Workers post each into a ledger, in the
transaction that completes its job. Some banks time out, some accounts are closed. Then SQL checks
that every payment was posted exactly once, or is dead with its reason, and that the money adds up.
With --rate the audit proves that none was claimed too early; with --tiers, where tenants take
turns, that none ever exceeded its concurrency limit. Shares are of the first half of all claims.
Exit code 0 if all holds, else 7.

Without --db it uses a new SQLite file of some 60 MB, removed unless a check fails or --dir is
given. Invalid lines of --file are reported by number and skipped; the exit code is then 6.`,
		Example: "  sluice demo\n  sluice demo --kill\n  sluice demo --rate 2000/s\n  sluice demo --tiers\n  sluice demo --db postgres://localhost/demo --payments 100000\n  sluice demo --file wave.jsonl --json",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			if f.file != "" {
				for _, name := range []string{"payments", "tenants", "seed"} {
					if command.Flags().Changed(name) {
						return usagef("--%s is of payments that are made up; with --file they come from the file", name)
					}
				}
				if command.Flags().Changed("due-in") {
					f.dueAt = time.Now().Add(f.dueIn)
				}
			}
			return a.demo(command.Context(), f)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.file, "file", "", "payments to use instead of generated ones, written as the demo writes its own")
	flags.StringVar(&f.folder, "dir", "", "folder for the files, which stay there (default: temporary)")
	flags.IntVar(&f.payments, "payments", 20_000, "payments to generate")
	flags.IntVar(&f.tenants, "tenants", 300, "tenants to generate")
	flags.Uint64Var(&f.seed, "seed", 1, "the same seed generates the same payments")
	flags.IntVar(&f.slots, "slots", 64, "handlers at once in each worker")
	flags.Var(newDuration(&f.dueIn, 3*time.Second), "due-in", "time until payments are due; for --file only if given")
	flags.Var(rate{&f.rate}, "rate", "post at most at this rate, such as 500/5s; the audit proves it")
	flags.BoolVar(&f.tiers, "tiers", false, "use tiers FREE, PRO and ENTERPRISE; the audit proves their limits")
	flags.BoolVar(&f.kill, "kill", false, "run workers as processes, and kill one midway (SIGKILL)")
	flags.BoolVar(&f.console, "console", false, "show it in the console, until an interrupt")
	flags.StringVar(&f.listen, "listen", defaultListen, "address of the console; a port alone is on loopback")
	flags.BoolVar(&f.json, "json", false, "print the summary as JSON, as -o json does")
	return command
}

func (a *app) demo(ctx context.Context, f demoFlags) (err error) {
	if f.payments < 1 || f.tenants < 1 || f.slots < 1 {
		return usagef("--payments, --tenants and --slots must be at least 1")
	}
	if f.json {
		a.output = "json"
	}
	temporary, err := a.placeDemo(&f)
	if err != nil {
		return err
	}
	defer func() {
		var broken codedError
		if kept := errors.As(err, &broken) && broken.code == exitCheckFailed; temporary != "" && !kept {
			_ = os.RemoveAll(temporary) // leftovers stay in the temporary folder
		}
	}()
	a.migrate = true
	if f.console {
		if err := a.measure(); err != nil {
			return err
		}
	}
	store, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.close(store)
	var shown *demoConsole
	if f.console {
		if shown, err = a.showDemo(ctx, store, f.listen); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, shown.leave()) }()
	}
	if err := a.writeWave(&f); err != nil {
		return err
	}
	ledger, err := demo.NewLedger(store)
	if err != nil {
		return err
	}
	if err := ledger.Prepare(ctx); err != nil {
		return fmt.Errorf("make the ledger: %w", err)
	}
	d := &demoRun{
		app: a, flags: f, store: store, client: a.client(store), ledger: ledger, tenants: make(map[string]bool),
		summary: demoSummary{Store: redactURL(a.db), File: f.file, Queue: "payments-" + time.Now().UTC().Format("20060102-150405.000")},
	}
	defer d.tend(ctx)()
	if err := d.run(ctx); err != nil {
		return err
	}
	if err := a.printOne(d.summary, d.print); err != nil {
		return err
	}
	if shown != nil {
		if err := d.stay(ctx, shown); err != nil {
			return err
		}
	}
	if !d.summary.Holds {
		return codedError{errors.New(d.failure()), exitCheckFailed, "this is a bug; keep the database and report it"}
	}
	if d.summary.Refused > 0 {
		return silentExit(exitPartly)
	}
	return nil
}

// placeDemo chooses the places of files and store, and returns the folder created for this run alone.
func (a *app) placeDemo(f *demoFlags) (temporary string, err error) {
	if a.db == "" || f.file == "" {
		if f.folder == "" {
			temporary, err = os.MkdirTemp("", "sluice-demo-")
			f.folder = temporary
		} else {
			err = os.MkdirAll(f.folder, 0o755)
		}
		if err != nil {
			return "", codedError{err, exitFailed, "name a folder that you may write to with --dir"}
		}
	}
	if a.db == "" {
		a.db = "sqlite:" + filepath.Join(f.folder, "demo.db")
		f.gone = temporary != ""
	}
	return temporary, nil
}

// writeWave generates the file of payments, unless one was given.
func (a *app) writeWave(f *demoFlags) error {
	if f.file != "" {
		return nil
	}
	f.file = filepath.Join(f.folder, "wave.jsonl")
	file, err := os.Create(f.file)
	if err != nil {
		return codedError{err, exitFailed, "name a folder that you may write to with --dir"}
	}
	due := time.Now().Add(f.dueIn).Truncate(time.Second).Add(time.Second)
	err = demo.Wave{Payments: f.payments, Tenants: f.tenants, Seed: f.seed, DueAt: due}.Write(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", f.file, err)
	}
	a.note("%s of %s, all due at %s", draw.Plural(f.payments, "payment"), draw.Plural(f.tenants, "tenant"), due.Format("15:04:05"))
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
	// tenants are the payments' tenants; balances reports whether the books balance.
	tenants  map[string]bool
	balances bool
}

func (d *demoRun) run(ctx context.Context) error {
	d.note("file:  %s\nstore: %s\nqueue: %s", d.summary.File, d.summary.Store, d.summary.Queue)
	settings := demo.Settings()
	settings.Rate = d.flags.rate
	if !settings.Rate.IsZero() || d.flags.tiers {
		settings.Audit = sluice.AuditFull // proves the limits
	}
	queue, err := d.client.EnsureQueue(ctx, d.summary.Queue, settings, d.act("demo"))
	if err != nil {
		return err
	}
	stored, err := d.enqueue(ctx)
	if err != nil {
		return err
	}
	if err := d.setTiers(ctx); err != nil {
		return err
	}
	var crew crew = &crewInside{run: d, logger: slog.New(slog.DiscardHandler)}
	if d.flags.kill {
		crew = &crewOutside{run: d}
	}
	begun := time.Now()
	if err := crew.start(ctx); err != nil {
		return errors.Join(err, crew.stop())
	}
	watchErr := d.watch(ctx, stored, crew)
	if ctx.Err() != nil {
		d.note("interrupted; the workers finish what they hold")
	}
	d.summary.PostSeconds = time.Since(begun).Seconds()
	if err := errors.Join(watchErr, crew.stop()); err != nil {
		return err
	}
	if d.summary.Check, err = d.ledger.Check(ctx, d.summary.Queue); err != nil {
		return fmt.Errorf("check the books: %w", err)
	}
	d.balances = d.summary.Check.Holds() && d.summary.Check.Payments == stored
	if err := errors.Join(d.checkPace(ctx, queue), d.checkTiers(ctx)); err != nil {
		return err
	}
	d.summary.Holds = d.failure() == ""
	return nil
}

// enqueue stores the file's payments and returns their number.
func (d *demoRun) enqueue(ctx context.Context) (int, error) {
	lines := lineEnqueuer{app: d.app, client: d.client, batchSize: 1000, run: newFileRun(), prepare: func(job *sluice.NewJob) error {
		if !d.flags.dueAt.IsZero() {
			job.DueAt, job.Delay = d.flags.dueAt, 0
		}
		if err := demo.Prepare(job, d.summary.Queue); err != nil {
			return err
		}
		if job.Tenant != "" {
			d.tenants[job.Tenant] = true
		}
		return nil
	}}
	file, err := lines.open(ctx, d.flags.file)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	begun := time.Now()
	out, err := lines.store(ctx)
	d.summary.EnqueueSeconds = time.Since(begun).Seconds()
	d.summary.Refused, d.summary.Duplicates = out.Refused, out.Duplicates
	if err == nil && out.Stored == 0 {
		err = usagef("there is no payment in %s", d.flags.file)
	}
	return out.Stored, err
}

// watch shows progress until every payment is posted or dead.
func (d *demoRun) watch(ctx context.Context, total int, crew crew) error {
	bar := d.newProgress("Posting", total)
	defer bar.leave()
	say := func(format string, args ...any) {
		bar.leave()
		d.note(format, args...)
	}
	for {
		depth, err := d.store.Depth(ctx, d.summary.Queue, sluice.DepthLimit)
		if err != nil {
			return err
		}
		left := depth.Ready + depth.Scheduled + depth.Blocked + depth.Claimed
		done := max(total-left, 0)
		status := fmt.Sprintf("queued %s  running %s  retrying %s  dead %s", draw.Count(depth.Ready), draw.Count(depth.Claimed), draw.Count(depth.Scheduled), draw.Count(depth.Dead))
		if done == 0 && depth.Scheduled == total {
			bar.begun = time.Now() // the rate counts from the due time
			status = "all wait until they are due"
		}
		if left == 0 {
			bar.end(done, status)
			return nil
		}
		bar.set(done, status)
		if err := crew.progress(ctx, done, total, say); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
