package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/sample"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/local"
	"github.com/sluice-queue/sluice/worker"
)

// devFlags are the options of `dev`.
type devFlags struct {
	listen string
	empty  bool
}

func (a *app) devCommand() *cobra.Command {
	var f devFlags
	command := &cobra.Command{
		Use:   "dev",
		Short: "Look around: the console with the work of a made-up shop",
		Long: `Runs all of Sluice in one process, with nothing to install: a store, upkeep, the HTTP API, the
console, a worker, and an engine. A made-up shop gives each page something to show: waves, a noisy
tenant, failures, retries, a paused queue, schedules, a batch and flows. Some jobs are held, an alert
fires, and people change settings.

--empty leaves the shop out, for work of your own. A button of the empty console opens it later.

Without --db and SLUICE_DB it uses a new SQLite file, removed at the end. In a store with work of your
own it asks for --empty. Only this machine reaches the server, where everybody is an admin.`,
		Example: "  sluice dev\n  sluice dev --empty --db sqlite:jobs.db",
		Args:    arguments(0, 0),
		RunE:    func(command *cobra.Command, _ []string) error { return a.dev(command.Context(), f) },
	}
	flags := command.Flags()
	flags.StringVar(&f.listen, "listen", defaultListen, "address of the console; a port alone is on loopback")
	flags.BoolVar(&f.empty, "empty", false, "without the shop")
	return command
}

// dev serves a store of its own until an interrupt.
func (a *app) dev(ctx context.Context, f devFlags) (err error) {
	if err := ownMachine(f.listen); err != nil {
		return err
	}
	temporary := ""
	if a.db == "" {
		if temporary, err = os.MkdirTemp("", "sluice-dev-"); err != nil {
			return codedError{err, exitFailed, "name a file that you may write to with --db sqlite:PATH"}
		}
		a.db = "sqlite:" + filepath.Join(temporary, "dev.db")
		defer func() {
			_ = os.RemoveAll(temporary) // leftovers stay in the temporary folder
			a.note("ended; the data is gone")
		}()
	} else {
		defer func() { a.note("ended; the data is in %s", redactURL(a.db)) }()
	}
	at, err := parseAddress(a.db)
	if err != nil {
		return err
	}
	switch {
	case a.log.level != "" || a.verbose:
	case f.empty:
		a.log.level = "warn"
	default:
		a.log.silent = true // failures of the shop are no news
	}
	a.migrate = true
	store, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.close(store)
	s := &server{app: a, flags: serveFlags{listen: f.listen, environment: "dev", grace: 2 * time.Second}, at: at, log: a.events(), failed: make(chan error, 2)}
	defer s.log.Flush()
	if err := s.openShop(ctx, store, f.empty); err != nil {
		return err
	}
	if err := s.listen(); err != nil {
		return err
	}
	s.greet(f.empty, temporary != "")
	return s.answer(ctx, func() error { return s.work(ctx, store) })
}

// fillTime is how long the sample data may take. They take a second or two.
const fillTime = 2 * time.Minute

// openShop adds the shop to what the server does: at once, or when somebody asks for sample data.
func (s *server) openShop(ctx context.Context, store sluice.Store, later bool) error {
	runs := local.New(store, local.Options{Worker: worker.Options{Slots: 24, Drain: time.Second, Logger: s.app.logger()}})
	shop := sample.New(store, sample.Options{Engine: runs, Logger: s.app.logger(), Alone: !later})
	asked := make(chan struct{})
	ask := sync.OnceFunc(func() { close(asked) })
	var filling sync.Mutex
	fill := func(context.Context) error {
		// An interrupt stops it. A browser that leaves the page must not: the store would have a part of the shop. A second press waits.
		ctx, stop := context.WithTimeout(ctx, fillTime)
		defer stop()
		filling.Lock()
		defer filling.Unlock()
		switch err := shop.Prepare(ctx); {
		case errors.Is(err, sample.ErrOccupied):
			return codedError{fmt.Errorf("%s: %w", redactURL(s.app.db), err), exitUsage, "leave the shop out with --empty, or let it have a new store: --db sqlite:PATH"}
		case errors.Is(err, sample.ErrPart):
			return codedError{fmt.Errorf("%s: %w", redactURL(s.app.db), err), exitRefused, "remove that store, or let the shop have a new one: --db sqlite:PATH"}
		case err != nil:
			return err
		}
		ask()
		return nil
	}
	s.engines = s.app.observeEngines(map[string]engine.Engine{sample.Engine: runs})
	s.more = []part{{name: "sample data", run: func(ctx context.Context) error {
		select {
		case <-asked:
			return shop.Run(ctx)
		case <-ctx.Done():
			return nil
		}
	}}}
	if later {
		s.samples = fill
		return nil
	}
	return fill(ctx)
}

// greet says where to look, and what to do.
func (s *server) greet(empty, temporary bool) {
	url := "http://" + s.doors[0].listener.Addr().String()
	kept := "which stays"
	if temporary {
		kept = "removed at the end"
	}
	fmt.Fprintf(s.app.stdout, "console  %s/\nAPI      %s/api/v1\nstore    %s, %s\n", url, url, redactURL(s.app.db), kept)
	if empty {
		me := thisProgram()
		fmt.Fprintf(s.app.stdout, "\nIn another terminal:\n  export SLUICE_DB=%s\n  %s enqueue mail '{\"to\":\"ada\"}'\n  %s work mail -- cat\n", shellWord(redactURL(s.app.db)), me, me)
	}
	fmt.Fprintln(s.app.stdout, "\nCtrl-C ends it.")
}

// thisProgram is how a shell finds this program.
func thisProgram() string {
	me, err := os.Executable()
	if err != nil {
		return "sluice"
	}
	if found, err := exec.LookPath("sluice"); err == nil {
		if same, err := filepath.EvalSymlinks(found); err == nil && same == me {
			return "sluice"
		}
	}
	return shellWord(me)
}

// shellWord writes a text as one word of a shell.
func shellWord(text string) string {
	if !strings.ContainsAny(text, " \t\n\"'`$&|;<>()*?[]{}#~!\\") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
