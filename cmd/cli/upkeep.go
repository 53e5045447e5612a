package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/schema"
	"github.com/sluice-queue/sluice/upkeep"
)

func (a *app) upkeepCommand() *cobra.Command {
	var once bool
	var engine engineFlags
	var options upkeep.Options
	var hooks webhookFlags
	command := &cobra.Command{
		Use:   "upkeep",
		Short: "Recover, expire and prune jobs, apply scheduled changes, evaluate alerts, seal the audit",
		Long: `Maintains the store until interrupted. Any number may run; one leads, the others stand by. Queue
settings say how often leases are checked and how many jobs are recovered at once
(recover_interval, recover_batch). Upkeep counts for "sluice forecast", carries out "sluice
operations", follows runs at the engines of --temporal and --engine, and evaluates alert rules.
Every upkeep notifies its webhooks, whichever leads.`,
		Example: "  sluice upkeep\n  sluice upkeep --once\n  sluice upkeep --alert-webhook https://hooks.example.com/sluice --alert-secret-file secret",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			if options.PruneBatch < 1 {
				return usagef("--prune-batch %d is not at least 1", options.PruneBatch)
			}
			logger := a.logger()
			options.Version = a.version
			options.Logger, options.PayloadChecker, options.LogLimit, options.Scrub = logger, schema.New(), a.log.limit, a.log.clean()
			engines, done, err := engine.open(true, logger)
			if err != nil {
				return err
			}
			defer done()
			options.Engines = a.observeEngines(engines)
			if options.Receivers, err = hooks.orEnvironment().receivers(); err != nil {
				return err
			}
			if once {
				return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
					done, err := upkeep.New(store, options).Once(ctx, true)
					if err != nil {
						return err
					}
					return a.printOne(done, func() error {
						_, err := fmt.Fprintf(a.stdout, "recovered %d, poisoned %d, followed %d, expired %d, repaired %d, pruned %d, settings %d, fired %d, flows %d, operated %d\n",
							done.Recovered, done.Poisoned, done.Followed, done.Expired, done.Repaired, done.Pruned, done.Settings, done.Fired, done.Flows, done.Operated)
						return err
					})
				})
			}
			store, err := a.open(command.Context())
			if err != nil {
				return err
			}
			defer a.close(store)
			return upkeep.New(store, options).Run(command.Context())
		},
	}
	flags := command.Flags()
	a.metrics.addTo(flags)
	a.addVersionTo(flags)
	engine.addTo(flags)
	hooks.addTo(flags)
	flags.Var(newDuration(&options.AlertInterval, 15*time.Second), "alert-interval", "how often to evaluate alert rules")
	flags.BoolVar(&once, "once", false, "do everything once, due or not, then end")
	flags.Var(newDuration(&options.Interval, time.Second), "interval", "how often to check for due work")
	flags.Var(newDuration(&options.PruneInterval, time.Minute), "prune-interval", "pause after all old jobs are deleted")
	flags.IntVar(&options.PruneBatch, "prune-batch", 1000, "most finished jobs to delete in one transaction")
	command.AddCommand(a.upkeepNowCommand())
	return command
}
