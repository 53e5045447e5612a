package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
)

func (a *app) tenantsCommand() *cobra.Command {
	var after string
	var limit int
	command := &cobra.Command{
		Use:   "tenants",
		Short: "List tenants, or put them into tiers",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				tenants, err := client.Tenants(ctx, after, limit)
				if err != nil {
					return err
				}
				return printList(a, tenants, func(t sluice.Tenant) string { return t.Name }, []column[sluice.Tenant]{
					{"TENANT", func(t sluice.Tenant) string { return t.Name }, false},
					{"TIER", func(t sluice.Tenant) string { return orDash(t.Tier) }, false},
					{"CHANGED", func(t sluice.Tenant) string { return ago(t.ChangedAt) }, true},
					{"BY", func(t sluice.Tenant) string { return t.ChangedBy }, false},
				})
			})
		},
	}
	command.Flags().StringVar(&after, "after", "", "the page after the one that ended with this name")
	command.Flags().IntVar(&limit, "limit", 100, "how many at the most")
	var tier string
	set := &cobra.Command{
		Use:     "set TENANT --tier TIER",
		Short:   "Put a tenant into a tier; an empty one takes it out",
		Example: "  sluice tenants set acme --tier PRO",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				_, err := client.SetTier(ctx, args[0], tier, a.act(""))
				return err
			})
		},
	}
	set.Flags().StringVar(&tier, "tier", "", "the tier")
	_ = set.MarkFlagRequired("tier")
	command.AddCommand(set)
	return command
}

func (a *app) tiersCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "tiers",
		Short: "List tiers, or add one",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				tiers, err := client.Tiers(ctx)
				if err != nil {
					return err
				}
				return printList(a, tiers, func(t sluice.Tier) string { return t.Name }, []column[sluice.Tier]{
					{"TIER", func(t sluice.Tier) string { return t.Name }, false},
					{"CHANGED", func(t sluice.Tier) string { return ago(t.ChangedAt) }, true},
					{"BY", func(t sluice.Tier) string { return t.ChangedBy }, false},
				})
			})
		},
	}
	command.AddCommand(&cobra.Command{
		Use:   "add TIER",
		Short: "Add a tier",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				_, err := client.AddTier(ctx, args[0], a.act(""))
				return err
			})
		},
	})
	return command
}
