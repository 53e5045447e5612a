package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
)

func (a *app) tenantsCommand() *cobra.Command {
	var after string
	var limit int
	command := &cobra.Command{
		Use:     "tenants",
		Short:   "List the tenants that are in tiers, or put them there",
		Example: "  sluice tenants\n  sluice tenants set acme --tier PRO",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				tenants, err := client.Tenants(ctx, after, limit)
				if err != nil {
					return err
				}
				if len(tenants) == 0 && a.output == "table" {
					a.note("no tenants; jobs may name any, and «sluice tenants set TENANT --tier TIER» puts one into a tier")
					return nil
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
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			if !command.Flags().Changed("tier") {
				return usagef("--tier is missing; write: sluice tenants set TENANT --tier TIER")
			}
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				_, err := client.SetTier(ctx, args[0], tier, a.act(""))
				if errors.Is(err, sluice.ErrNotFound) {
					return codedError{err, exitNotFound, "look at «sluice tiers», or add it with «sluice tiers add " + tier + "»"}
				}
				if err == nil {
					a.note("tenant %s is in tier %s", args[0], orDash(tier))
				}
				return err
			})
		},
	}
	set.Flags().StringVar(&tier, "tier", "", "the tier; required, \"\" for none")
	command.AddCommand(set)
	return command
}

func (a *app) tiersCommand() *cobra.Command {
	command := &cobra.Command{
		Use:     "tiers",
		Short:   "List tiers, or add one",
		Example: "  sluice tiers\n  sluice tiers add PRO",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				tiers, err := client.Tiers(ctx)
				if err != nil {
					return err
				}
				if len(tiers) == 0 && a.output == "table" {
					a.note("no tiers; «sluice tiers add TIER» makes one")
					return nil
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
		Use:     "add TIER",
		Short:   "Add a tier",
		Example: "  sluice tiers add PRO",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				_, err := client.AddTier(ctx, args[0], a.act(""))
				if errors.Is(err, sluice.ErrConflict) {
					return codedError{fmt.Errorf("tier %q is there already", args[0]), exitRefused, "put tenants into it with «sluice tenants set TENANT --tier " + args[0] + "»"}
				}
				if err == nil {
					a.note("added tier %s", args[0])
				}
				return err
			})
		},
	})
	return command
}
