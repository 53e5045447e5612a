// Command bench compares Sluice with other queues on this machine, and writes docs/benchmarks.md.
//
// Bench starts a temporary PostgreSQL, runs each cell as a child process (itself, with a task in an environment
// variable), and removes everything afterwards. The table marks missed targets. The exit code is 1 only if a cell
// failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-queue/sluice/bench/cell"
	"github.com/sluice-queue/sluice/bench/report"
)

// page is the path of the report, relative to this folder.
const page = "../docs/benchmarks.md"

// choice holds the parsed command line.
type choice struct {
	plans  []plan
	sizes  sizes
	rounds int
	out    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := start(ctx); err != nil {
		slog.Error("bench failed", "error", err)
		stop()
		os.Exit(1)
	}
}

func start(ctx context.Context) error {
	if os.Getenv(cell.Env) != "" {
		return cell.Main(ctx)
	}
	chosen, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	return measure(ctx, chosen)
}

// parse reads the command line. With -only, a page is written only if -out names one; with -quick, never.
func parse(args []string) (choice, error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	only := flags.String("only", "", "names of scenarios, with commas between them; default: all of "+strings.Join(names(plans), ","))
	rounds := flags.Int("rounds", 5, "how often each scenario is measured")
	quick := flags.Bool("quick", false, "small sizes and one round, to see that it works; writes no page")
	out := flags.String("out", page, "the page to write; with -only: to put the results into; empty: none")
	if err := flags.Parse(args); err != nil {
		return choice{}, err
	}
	if flags.NArg() > 0 || *rounds < 1 {
		return choice{}, fmt.Errorf("cannot make sense of %q with %d rounds", flags.Args(), *rounds)
	}
	chosen := choice{plans: plans, sizes: whole, rounds: *rounds, out: *out}
	if *only != "" {
		var err error
		if chosen.plans, err = pick(strings.Split(*only, ",")); err != nil {
			return choice{}, err
		}
	}
	named := false
	flags.Visit(func(f *flag.Flag) { named = named || f.Name == "out" })
	if *quick {
		chosen.sizes, chosen.rounds = small, 1
	}
	if *quick || *only != "" && !named {
		chosen.out = ""
	}
	return chosen, nil
}

// measure runs the scenarios and reports them, even if a cell failed. It puts each into the page at once: who stops it after hours
// loses one scenario.
func measure(ctx context.Context, chosen choice) error {
	begun := time.Now()
	r, err := newRig(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.checkRoom(); err != nil {
		return err
	}
	results := make(map[string]measured)
	var sections []section
	var failed []error
	for _, p := range chosen.plans {
		s := p.make(chosen.sizes, results)
		m, errs := r.runScenario(ctx, s, min(chosen.rounds, s.atMost()))
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		results[s.name] = m
		sections = append(sections, section{s, m})
		failed = append(failed, errs...)
		told, err := r.tell(ctx, sections[len(sections)-1:], errs)
		if err != nil {
			return err
		}
		told.Date = begun
		if err := mergePage(chosen.out, told); err != nil {
			return err
		}
	}
	told, err := r.tell(ctx, sections, failed)
	if err != nil {
		return err
	}
	told.Date = begun
	fmt.Print(told.Text())
	if chosen.out != "" && len(chosen.plans) == len(plans) {
		failed = append(failed, os.WriteFile(chosen.out, []byte(told.Markdown()), 0o644))
	}
	return errors.Join(failed...)
}

// mergePage puts the results of some scenarios into a page. An empty path names none.
func mergePage(path string, told report.Report) error {
	if path == "" {
		return nil
	}
	earlier, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, []byte(report.Merge(string(earlier), told)), 0o644)
}
