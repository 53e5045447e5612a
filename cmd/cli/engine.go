package cli

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/acting"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/remote"
	"github.com/sluice-queue/sluice/upkeep"
)

func (a *app) engineCommand() *cobra.Command {
	command := group(&cobra.Command{
		Use: "engine", Short: "Check engines and reconcile runs of jobs", Example: "  sluice engine check payment\n  sluice engine reconcile payment --dry-run",
	})
	command.AddCommand(a.engineCheckCommand(), a.engineReconcileCommand())
	return command
}

func (a *app) engineCheckCommand() *cobra.Command {
	var engine engineFlags
	var start bool
	command := &cobra.Command{
		Use:   "check [QUEUE…]",
		Short: "Check whether the engine can run the jobs of queues",
		Long: `Asks the engine for its version, each queue's namespace and retention of ended runs, and whether
workers wait at the task queue. To test both permissions, --start starts a run due in an hour,
which no worker gets, and terminates it.

Through a server, the server asks its own engines, unless a flag names one.`,
		Example: "  sluice engine check payment\n  sluice engine check --temporal 127.0.0.1:7233",
		Args:    arguments(0, math.MaxInt),
		RunE: func(command *cobra.Command, queues []string) error {
			if remote.IsAddress(a.db) && engine.given() == "" {
				return a.checkThere(command.Context(), queues, start)
			}
			engines, done, err := engine.open(false, slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			defer done()
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				checked, err := a.enginesChecked(ctx, store, engines, queues, start)
				if err != nil {
					return err
				}
				return a.printChecked(checked)
			})
		},
	}
	engine.addTo(command.Flags())
	command.Flags().BoolVar(&start, "start", false, "start a run and terminate it")
	return command
}

func (a *app) enginesChecked(ctx context.Context, store sluice.Store, engines map[string]engine.Engine, queues []string, start bool) ([]wire.EngineCheck, error) {
	chosen, err := chosenQueues(ctx, store, queues)
	if err != nil {
		return nil, err
	}
	var checked []wire.EngineCheck
	for _, q := range chosen {
		runner := engines[q.Settings.Engine]
		unknown := &engine.UnknownError{Queue: q.Name, Engine: q.Settings.Engine}
		switch {
		case runner != nil:
			checked = append(checked, acting.CheckEngine(ctx, runner, q, start))
		case len(queues) > 0:
			return nil, fmt.Errorf("check queue %q: %w", q.Name, unknown)
		case q.Settings.Engine != "":
			a.note("%s: not asked: %s; add %s", q.Name, unknown, presence.EngineFlag(q.Settings.Engine))
		}
	}
	return checked, nil
}

// checkThere makes the server check its engines.
func (a *app) checkThere(ctx context.Context, queues []string, start bool) error {
	return a.withClient(ctx, func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
		server, _ := sluice.StoreAs[*remote.Store](store)
		chosen, err := chosenQueues(ctx, store, queues)
		if err != nil {
			return err
		}
		var checked []wire.EngineCheck
		for _, q := range chosen {
			if q.Settings.Engine == "" && len(queues) == 0 {
				continue
			}
			switch one, err := server.CheckEngine(ctx, q.Name, start); {
			case err == nil:
				checked = append(checked, wire.EngineCheck(one))
			case len(queues) > 0:
				return fmt.Errorf("check queue %q: %w", q.Name, err)
			default:
				a.note("%s: not asked: %s", q.Name, err)
			}
		}
		return a.printChecked(checked)
	})
}

// chosenQueues returns the named queues, or all.
func chosenQueues(ctx context.Context, store sluice.Store, names []string) ([]sluice.Queue, error) {
	all, err := store.Queues(ctx, sluice.QueueFilter{Names: names})
	if err != nil || len(names) == 0 {
		return all, err
	}
	byName := make(map[string]sluice.Queue, len(all))
	for _, q := range all {
		byName[q.Name] = q
	}
	chosen := make([]sluice.Queue, len(names))
	for i, name := range names {
		q, known := byName[name]
		if !known {
			return nil, fmt.Errorf("queue %q: %w", name, sluice.ErrNotFound)
		}
		chosen[i] = q
	}
	return chosen, nil
}

func (a *app) printChecked(checked []wire.EngineCheck) error {
	faults := 0
	for _, c := range checked {
		faults += len(c.Faults)
	}
	err := printList(a, checked, func(c wire.EngineCheck) string { return c.Queue }, []column[wire.EngineCheck]{
		{"QUEUE", func(c wire.EngineCheck) string { return c.Queue }, false},
		{"ENGINE", func(c wire.EngineCheck) string { return c.Engine }, false},
		{"TYPE", func(c wire.EngineCheck) string { return c.Type }, false},
		{"TASK QUEUE", func(c wire.EngineCheck) string { return c.TaskQueue }, false},
		{"VERSION", func(c wire.EngineCheck) string { return c.Report.Version }, false},
		{"KEEPS RUNS", func(c wire.EngineCheck) string { return draw.Duration(c.Report.Retention) }, true},
		{"WORKERS", func(c wire.EngineCheck) string { return fmt.Sprint(c.Report.Pollers) }, true},
	})
	if err != nil || faults == 0 {
		return err
	}
	for _, c := range checked {
		for _, fault := range c.Faults {
			a.note("%s: %s", c.Queue, fault)
		}
	}
	return silentExit(exitCheckFailed)
}

func (a *app) engineReconcileCommand() *cobra.Command {
	var engine engineFlags
	var dryRun bool
	command := &cobra.Command{
		Use:   "reconcile QUEUE",
		Short: "Ask the engine for all runs of a queue, and settle its jobs",
		Long: `Asks about every job dispatched or claimed for an engine, and does what upkeep would do in time.
Jobs of ended runs are completed, retried or buried; claims of dead dispatchers are dispatched or
handed back. --dry-run only lists them.

Through a server, the server asks its own engines, 100 jobs at a time.`,
		Example: "  sluice engine reconcile payment --dry-run\n  sluice engine reconcile payment",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			what := upkeep.Reconciliation{Queue: args[0], DryRun: dryRun}
			if remote.IsAddress(a.db) {
				return a.reconcileThere(command.Context(), engine, what)
			}
			return a.reconcile(command.Context(), engine, what)
		},
	}
	engine.addTo(command.Flags())
	command.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing")
	return command
}

func (a *app) reconcile(ctx context.Context, engine engineFlags, what upkeep.Reconciliation) error {
	engines, done, err := engine.open(false, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer done()
	return a.withClient(ctx, func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
		var rows []upkeep.Judged
		err := upkeep.New(store, upkeep.Options{Engines: engines}).Reconcile(ctx, what, func(j upkeep.Judged) error {
			rows = append(rows, j)
			return nil
		})
		if err != nil {
			return err
		}
		return a.printJudged(rows)
	})
}

// reconciledAtOnce is for how many jobs a server asks its engine in one request.
const reconciledAtOnce = 100

// reconcileThere makes the server reconcile with its engines. The jobs are listed first, so that each request is short.
func (a *app) reconcileThere(ctx context.Context, engine engineFlags, what upkeep.Reconciliation) error {
	if given := engine.given(); given != "" {
		return usagef("--%s: the server asks its own engines; leave it out", given)
	}
	return a.withClient(ctx, func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
		server, _ := sluice.StoreAs[*remote.Store](store)
		filter := sluice.JobFilter{Queue: what.Queue, States: []sluice.State{sluice.StateClaimed, sluice.StateDispatched}, OldestFirst: true, Limit: reconciledAtOnce}
		var rows []upkeep.Judged
		for {
			page, err := store.Jobs(ctx, filter)
			if err != nil {
				return err
			}
			byID, ids := make(map[sluice.ID]sluice.Job), make([]sluice.ID, len(page.Jobs))
			for i, job := range page.Jobs {
				byID[job.ID], ids[i] = job, job.ID
			}
			judged, err := server.Reconcile(ctx, what.Queue, ids, what.DryRun) // without jobs it says whether queue and engine are there
			if err != nil {
				return err
			}
			for _, j := range judged {
				rows = append(rows, upkeep.Judged{Job: byID[j.JobID], Run: j.Run, Event: j.Event, Reason: j.Reason})
			}
			if filter.Cursor = page.Cursor; filter.Cursor == "" {
				return a.printJudged(rows)
			}
		}
	})
}

func (a *app) printJudged(rows []upkeep.Judged) error {
	return printList(a, rows, func(j upkeep.Judged) string { return j.Job.ID.String() }, []column[upkeep.Judged]{
		{"ID", func(j upkeep.Judged) string { return j.Job.ID.String() }, false},
		{"STATE", func(j upkeep.Judged) string { return string(j.Job.State) }, false},
		{"RUN", func(j upkeep.Judged) string { return j.Run.Ref }, false},
		{"IN THE ENGINE", func(j upkeep.Judged) string { return string(j.Run.State) }, false},
		{"SO", func(j upkeep.Judged) string { return string(j.Event) }, false},
		{"BECAUSE", func(j upkeep.Judged) string { return j.Reason }, false},
	})
}

func (a *app) askEngineCommand() *cobra.Command {
	var engine engineFlags
	command := &cobra.Command{
		Use:     "ask-engine ID",
		Short:   "Ask the engine about the run of a job",
		Long:    "Asks the engine for the run of a job. Through a server, the server asks its own engine, unless a flag names one.",
		Example: "  sluice ask-engine 01a1fb72-1dea-7abc-8fc6-99e4817522bb",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			id, err := parseID(args[0])
			if err != nil {
				return err
			}
			if remote.IsAddress(a.db) && engine.given() == "" {
				return a.askThere(command.Context(), id)
			}
			engines, done, err := engine.open(false, slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			defer done()
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, client *sluice.Client) error {
				job, err := client.Job(ctx, id)
				if err != nil {
					return fmt.Errorf("job %s: %w", id, err)
				}
				run, err := upkeep.New(store, upkeep.Options{Engines: engines}).Ask(ctx, job)
				if err != nil {
					return err
				}
				return a.printNamed(run, job.ID.String(), func() error { return a.printRun(job, run) })
			})
		},
	}
	engine.addTo(command.Flags())
	return command
}

// askThere makes the server ask its engine for the run of a job.
func (a *app) askThere(ctx context.Context, id sluice.ID) error {
	return a.withClient(ctx, func(ctx context.Context, store sluice.Store, client *sluice.Client) error {
		job, err := client.Job(ctx, id)
		if err != nil {
			return fmt.Errorf("job %s: %w", id, err)
		}
		server, _ := sluice.StoreAs[*remote.Store](store)
		run, err := server.AskEngine(ctx, id)
		if err != nil {
			return err
		}
		return a.printNamed(run, job.ID.String(), func() error { return a.printRun(job, run) })
	})
}

func (a *app) printRun(job sluice.Job, run engine.Outcome) error {
	_, err := fmt.Fprintf(a.stdout, "job %s is %s; its run %s is %s in the engine\n", job.ID, job.State, run.Ref, run.State)
	for _, line := range []struct{ name, text string }{{"error", run.Error}, {"result", string(run.Result)}} {
		if err == nil && line.text != "" {
			_, err = fmt.Fprintf(a.stdout, "%s: %s\n", line.name, line.text)
		}
	}
	if err == nil && !run.EndedAt.IsZero() {
		_, err = fmt.Fprintf(a.stdout, "ended: %s\n", run.EndedAt.UTC().Format(time.RFC3339))
	}
	return err
}
