// Package cli is the command line of Sluice. Each group of commands has its own file. Every command is `sluice VERB` or
// `sluice NOUN VERB`.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/schema"
)

// app holds input, output and the flags that all commands share.
type app struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	db      string
	token   string
	profile string
	given   []given // the settings that profiles can have, and where they came from
	output  string
	by      string
	reason  string
	log     logFlags
	timeout time.Duration
	migrate bool
	verbose bool
	quiet   bool
	version string // of the user's program, for `sluice holders`

	programs programs // run for jobs
	watch    watch    // observes the command's calls
	metrics  metricsServer
}

// Main runs a command line and returns its exit code; explain.go lists the codes.
func Main(args []string) int {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, programs: programs{guarded: true}}
	ctx, stop := untilSignal(context.Background(), a.programs.kill)
	defer stop()
	return a.run(ctx, args)
}

// untilSignal ends the context at the first interrupt, so that work drains. At the second it calls leave and exits.
func untilSignal(ctx context.Context, leave func()) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var once sync.Once
	stop := func() {
		once.Do(func() {
			signal.Stop(signals)
			close(signals)
		})
		cancel()
	}
	go func() {
		if _, ok := <-signals; !ok {
			return
		}
		cancel()
		if _, ok := <-signals; ok {
			leave()
			os.Exit(exitInterrupted)
		}
	}()
	return ctx, stop
}

func (a *app) run(ctx context.Context, args []string) int {
	a.stdin = interruptible{ctx, a.stdin}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	defer a.endWatch()
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if toldToEnd(err) {
		a.note("ended: %v", err)
		return exitOK
	}
	if code, silent := asExit(err); silent {
		return code
	}
	return a.explain(command, err)
}

// interruptible ends a read when the context ends. Otherwise a terminal read would wait for a line that never comes.
type interruptible struct {
	ctx    context.Context
	reader io.Reader
}

func (r interruptible) Read(p []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	read := make(chan result, 1)
	own := make([]byte, len(p)) // the read may go on after Read has returned
	go func() {
		n, err := r.reader.Read(own)
		read <- result{n, err}
	}()
	select {
	case got := <-read:
		copy(p, own[:got.n])
		return got.n, got.err
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}

func (a *app) root() *cobra.Command {
	root := group(&cobra.Command{
		Use:           "sluice",
		Short:         "A durable dispatch queue in a database you already run",
		Long:          longHelp + exitCodesLine() + ".",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(command *cobra.Command, _ []string) error {
			if err := a.settle(command); err != nil {
				return err
			}
			return a.beginWatch(command)
		},
	})
	root.SetFlagErrorFunc(flagError)
	root.Version = built().String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "show the version of this program")
	flags := root.PersistentFlags()
	flags.StringVar(&a.db, "db", "", "the store: sqlite:PATH, postgres://USER@HOST/DATABASE or https://HOST (default: SLUICE_DB)")
	flags.StringVar(&a.token, "token", "", "token for a server, or @FILE (default: SLUICE_TOKEN)")
	flags.StringVar(&a.profile, "profile", "", "profile of ~/.config/sluice/config.toml (default: SLUICE_PROFILE)")
	flags.StringVarP(&a.output, "output", "o", "table", "output format: "+strings.Join(outputs, ", "))
	flags.StringVar(&a.by, "by", "", "actor in the audit (default: you, as USER@HOST)")
	flags.StringVar(&a.reason, "reason", "", "reason in the audit")
	a.log.addTo(flags)
	flags.Var(newDuration(&a.timeout, defaultTimeout), "timeout", "most time for a look-up or an act")
	flags.BoolVar(&a.migrate, "migrate", false, "migrate the schema first (or SLUICE_MIGRATE=true)")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "log more")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "print no progress or notes; log only problems")
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"start", "Start:", []*cobra.Command{a.devCommand(), a.demoCommand(), a.demoWorkerCommand(), a.migrateCommand(), a.workCommand(), a.guardProgramsCommand(), a.dispatchCommand(), a.upkeepCommand(), a.serveCommand(), a.forwardCommand(), a.moveCommand()}},
		{"jobs", "Jobs:", []*cobra.Command{a.enqueueCommand(), a.jobsCommand(), a.jobCommand(), a.waitCommand(), a.whyCommand(), a.retryCommand(), a.requeueCommand(), a.resolveCommand(), a.cancelCommand(), a.holdCommand(), a.releaseCommand(), a.editCommand(), a.runNowCommand(), a.rescheduleCommand(), a.deadCommand(), a.operationsCommand(), a.schedulesCommand(), a.batchesCommand(), a.flowsCommand(), a.askEngineCommand()}},
		{"queues", "Queues and settings:", []*cobra.Command{a.queuesCommand(), a.pauseCommand(), a.resumeCommand(), a.settingsCommand(), a.limitsCommand(), a.tenantsCommand(), a.tiersCommand(), a.tokensCommand()}},
		{"look", "Look after it:", []*cobra.Command{a.topCommand(), a.statsCommand(), a.wavesCommand(), a.alertsCommand(), a.exportCommand(), a.simCommand(), a.auditCommand(), a.holdersCommand(), a.engineCommand(), a.runsCommand(), a.doctorCommand(), a.probeCommand(), a.configCommand(), a.versionCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, command := range group.commands {
			command.GroupID = group.id
			root.AddCommand(command)
		}
	}
	root.SetHelpCommand(helpCommand(root))
	root.SetHelpCommandGroupID("look")
	completionCommand(root).GroupID = "look"
	return root
}

// longHelp precedes the exit codes.
const longHelp = `Sluice stores jobs in a database you already run (SQLite or PostgreSQL). Workers
get them when they are due, under leases, at the rate you allow.

  sluice demo                                            see it work, with this program alone
  export SLUICE_DB=sqlite:jobs.db
  sluice migrate                                         create the store
  sluice enqueue mail '{"to":"ada"}'                     enqueue a job
  sluice work mail -- ./send-mail                        run a program for each job
  sluice jobs                                            list jobs

Durations: 500ms, 30s, 5m, 2h or 7d. Instants need a zone: 2026-12-01T16:00:00Z.

Exit codes: `

// whoAmI returns the default of --by: user@host.
func whoAmI() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return name + "@" + host
}

// act returns the actor, reason and id that the audit records. --reason replaces the given reason.
func (a *app) act(reason string) sluice.Act {
	if a.reason != "" {
		reason = a.reason
	}
	return sluice.Act{By: a.by, Reason: reason, ID: sluice.NewID()}
}

// withClient opens the store for one look-up or act, within --timeout.
func (a *app) withClient(ctx context.Context, do func(ctx context.Context, store sluice.Store, client *sluice.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	store, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.close(store)
	return do(ctx, store, a.client(store))
}

func (a *app) client(store sluice.Store) *sluice.Client {
	return sluice.NewClient(store, sluice.ClientOptions{PayloadChecker: schema.New(), Logger: a.logger()})
}

func (a *app) close(store sluice.Store) {
	a.metrics.endGauges(store)
	if err := store.Close(); err != nil {
		a.note("close the store: %v", err)
	}
}

// note prints a message on standard error, unless --quiet is given.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.stderr, format+"\n", args...)
	}
}

// terminalWidth returns the width of a writer's terminal; 0: not a terminal.
func terminalWidth(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 80
	}
	return width
}
