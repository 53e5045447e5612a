package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/cmd/internal/tenants"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/tenancy"
)

// tenantLimits formats a tenant's own limits, which count first, and its tier's.
func tenantLimits(t tenants.Row) string {
	own, tier := limitsText(t.Limits), limitsText(t.TierLimits)
	switch {
	case tier == noLimits:
		return own
	case own == noLimits:
		return "of its tier: " + tier
	}
	return own + "; of its tier: " + tier
}

func (a *app) tenantsCommand() *cobra.Command {
	var after string
	var limit int
	command := &cobra.Command{
		Use:     "tenants",
		Short:   "List and change tenants that have tiers or limits",
		Long:    tenantsHelp(),
		Example: "  sluice tenants\n  sluice tenants set acme --tier PRO",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, client *sluice.Client) error {
				rows, err := tenants.List(ctx, store, client, after, limit)
				if err != nil {
					return err
				}
				if len(rows) == 0 && a.output == "table" {
					a.note("no tenants; jobs may name any, and `sluice tenants set TENANT --tier TIER` puts one into a tier")
					return nil
				}
				return printList(a, rows, func(t tenants.Row) string { return t.Name }, []column[tenants.Row]{
					{"TENANT", func(t tenants.Row) string { return t.Name }, false},
					{"TIER", func(t tenants.Row) string { return orDash(t.Tier) }, false},
					{"IN FLIGHT", func(t tenants.Row) string { return tenants.LoadText(t.InFlight, t.InFlightMore) }, true},
					{"WAITING", func(t tenants.Row) string { return tenants.LoadText(t.Waiting, t.WaitingMore) }, true},
					{"LIMITS", tenantLimits, false},
					{"CHANGED", func(t tenants.Row) string { return ago(t.ChangedAt) }, true},
					{"BY", func(t tenants.Row) string { return t.ChangedBy }, false},
				})
			})
		},
	}
	command.Flags().StringVar(&after, "after", "", "continue after this name")
	command.Flags().IntVar(&limit, "limit", 100, "most tenants")
	command.AddCommand(a.setTenantCommand(), a.deleteCommand(audit.ObjectTenant, "its jobs stay, under the queue's limits"))
	return command
}

func tenantsHelp() string {
	return fmt.Sprintf(`Lists tenants that have a tier or limits, with their jobs in all queues. IN FLIGHT counts claimed
and dispatched jobs, at most %s per queue. WAITING counts queued jobs, due or not, as upkeep last
counted the %d largest tenants of each queue. "+" means possibly more; "-" means unknown: no upkeep
counts, or the tenant is not among the largest.`, draw.Count(sluice.DepthLimit), forecast.MaxTenants)
}

func (a *app) setTenantCommand() *cobra.Command {
	var tier string
	var f limitFlags
	var yes *bool
	command := &cobra.Command{
		Use:   "set TENANT [NAME=VALUE…]",
		Short: "Put a tenant into a tier, or set its own concurrency, rate, burst, weight",
		Long: `Puts a tenant into a tier (--tier "" takes it out), or sets its own limits, which count before the
tier's: in one queue with --queue, for a while with --for. An empty value removes a limit. A
concurrency or rate of 0 is no limit. Raising one to twice the tier's or more, or to no limit, asks
first, and needs --yes if nobody can be asked.`,
		Example: "  sluice tenants set acme --tier PRO\n  sluice tenants set acme concurrency=50 --for 2h --reason \"their migration\" --yes\n  sluice tenants set acme rate=100/s weight=3 --queue payments\n  sluice tenants set acme concurrency=",
		Args:    arguments(1, 5),
		RunE: func(command *cobra.Command, args []string) error {
			if !command.Flags().Changed("tier") && len(args) == 1 {
				return usagef("say what to change; write: sluice tenants set TENANT --tier TIER, or: sluice tenants set TENANT concurrency=5")
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				if err := a.guardTenant(ctx, store, tenancy.Limits{Tenant: args[0], Queue: f.queue}, command.Flags().Lookup("tier"), args[1:], *yes); err != nil {
					return err
				}
				if command.Flags().Changed("tier") {
					if err := a.setTier(ctx, store, args[0], tier); err != nil {
						return err
					}
				}
				if len(args) == 1 {
					return nil
				}
				return a.setLimits(ctx, store, tenancy.Limits{Tenant: args[0], Queue: f.queue}, f, args[1:])
			})
		},
	}
	yes = addYes(command)
	command.Flags().StringVar(&tier, "tier", "", "the tier; \"\" for none")
	allowEmpty(command.Flags(), "tier")
	command.Flags().StringVar(&f.queue, "queue", "", "limits for this queue only (default: every queue)")
	command.Flags().Var(duration{&f.during}, "for", "how long the tenant's own limits count, such as 2h (default: as its present ones there, else for good)")
	return command
}

func (a *app) setTier(ctx context.Context, store sluice.Store, tenant, tier string) error {
	_, err := tenancy.SetTier(ctx, store, tenant, tier, a.act(""))
	if errors.Is(err, sluice.ErrNotFound) {
		return codedError{err, exitNotFound, "look at `sluice tiers`, or add it with `sluice tiers add " + tier + "`"}
	}
	if err == nil {
		a.note("tenant %s is in tier %s", tenant, orDash(tier))
	}
	return err
}

func (a *app) tiersCommand() *cobra.Command {
	command := &cobra.Command{
		Use:     "tiers",
		Short:   "List and change tiers and their limits",
		Example: "  sluice tiers\n  sluice tiers preset\n  sluice tiers add GOLD\n  sluice tiers set GOLD concurrency=50",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				rows, err := tenants.Tiers(ctx, store)
				if err != nil {
					return err
				}
				if len(rows) == 0 && a.output == "table" {
					a.note("no tiers; `sluice tiers add TIER` makes one, and `sluice tiers preset` makes FREE, PRO and ENTERPRISE")
					return nil
				}
				return printList(a, rows, func(t tenants.TierRow) string { return t.Name }, []column[tenants.TierRow]{
					{"TIER", func(t tenants.TierRow) string { return t.Name }, false},
					{"LIMITS", func(t tenants.TierRow) string { return limitsText(t.Limits) }, false},
					{"CHANGED", func(t tenants.TierRow) string { return ago(t.ChangedAt) }, true},
					{"BY", func(t tenants.TierRow) string { return t.ChangedBy }, false},
				})
			})
		},
	}
	command.AddCommand(a.addTierCommand(), a.setTierCommand(), a.presetTiersCommand(),
		a.deleteCommand(audit.ObjectTier, "its tenants are then in none"))
	return command
}

func (a *app) addTierCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "add TIER",
		Short:   "Add a tier",
		Example: "  sluice tiers add TRIAL",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				_, err := tenancy.AddTier(ctx, store, args[0], a.act(""))
				if errors.Is(err, sluice.ErrConflict) {
					return codedError{fmt.Errorf("tier %q is there already", args[0]), exitRefused, "put tenants into it with `sluice tenants set TENANT --tier " + args[0] + "`"}
				}
				if err == nil {
					a.note("added tier %s", args[0])
				}
				return err
			})
		},
	}
}
