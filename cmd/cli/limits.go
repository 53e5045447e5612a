package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/cmd/internal/tenants"
	"github.com/sluice-queue/sluice/tenancy"
)

// limitFlags say for which queue and how long limits count.
type limitFlags struct {
	queue  string
	during time.Duration
}

// figures parses limits such as concurrency=5.
func figures(args []string) (func(*tenancy.Limits) error, error) {
	type figure struct{ name, value string }
	var given []figure
	for _, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		if !found {
			return nil, usagef("%q is not written as NAME=VALUE, such as concurrency=5", arg)
		}
		if err := new(tenancy.Limits).Set(name, value); err != nil {
			return nil, codedError{err, exitUsage, "write it as concurrency=5, rate=10/s, burst=20 or weight=3; an empty value says nothing any more"}
		}
		given = append(given, figure{name, value})
	}
	return func(l *tenancy.Limits) error {
		for _, f := range given {
			if err := l.Set(f.name, f.value); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// setLimits changes the limits of a tier or a tenant.
func (a *app) setLimits(ctx context.Context, store sluice.Store, of tenancy.Limits, f limitFlags, args []string) error {
	set, err := figures(args)
	if err != nil {
		return err
	}
	stored, err := tenants.SetLimits(ctx, store, of, f.during, set, a.act(""))
	if errors.Is(err, sluice.ErrNotFound) && of.Tier != "" {
		return codedError{err, exitNotFound, "look at `sluice tiers`, or add it with `sluice tiers add " + of.Tier + "`"}
	}
	if err == nil {
		a.note("%s %s: %s", stored.Object(), stored.Name(), limitsText([]tenancy.Limits{stored}))
	}
	return err
}

const noLimits = "no limits"

// limitsText formats limits on one line.
func limitsText(all []tenancy.Limits) string {
	var parts []string
	for _, l := range all {
		var figures []string
		add := func(name, value string) { figures = append(figures, name+" "+value) }
		if l.Concurrency != nil {
			add("concurrency", strconv.Itoa(*l.Concurrency))
		}
		if l.Rate != nil {
			add("rate", l.Rate.String())
		}
		if l.Burst != nil {
			add("burst", strconv.Itoa(*l.Burst))
		}
		if l.Weight != nil {
			add("weight", strconv.Itoa(*l.Weight))
		}
		if len(figures) > 0 && !l.Until.IsZero() {
			add("until", l.Until.Format(time.RFC3339))
		}
		if l.PausedAt(time.Now()) {
			figures = append(figures, pausedText(l))
		}
		if len(figures) == 0 {
			continue
		}
		where := "in every queue"
		if l.Queue != "" {
			where = "in " + l.Queue
		}
		parts = append(parts, strings.Join(figures, ", ")+" "+where)
	}
	if len(parts) == 0 {
		return noLimits
	}
	return strings.Join(parts, "; ")
}

func pausedText(l tenancy.Limits) string {
	text := "paused"
	if l.ChangedBy != "" {
		text += " by " + l.ChangedBy
	}
	if !l.PausedUntil.IsZero() {
		text += " until " + l.PausedUntil.Format(time.RFC3339)
	}
	if l.Reason != "" {
		text += " (" + l.Reason + ")"
	}
	return text
}

// pauseTenant pauses a tenant in the named queue, or in every queue.
func (a *app) pauseTenant(ctx context.Context, store sluice.Store, args []string, tenant string, during time.Duration) error {
	paused, err := tenancy.Pause(ctx, store, onlyQueue(args), tenant, during, a.act(""))
	if err == nil {
		a.note("tenant %s: %s; open it with `%s`", tenant, limitsText([]tenancy.Limits{paused}), resumeLine(args, tenant))
	}
	return err
}

func onlyQueue(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func resumeLine(args []string, tenant string) string {
	return strings.Join(append(append([]string{"sluice", "resume"}, args...), "--tenant", tenant), " ")
}

// queueOrTenant requires a queue or tenant to pause or resume.
func queueOrTenant(args []string, tenant string) error {
	if len(args) == 0 && tenant == "" {
		return usagef("name a queue, or a tenant with --tenant")
	}
	return nil
}

func (a *app) presetTiersCommand() *cobra.Command {
	var queue string
	command := &cobra.Command{
		Use:     "preset",
		Short:   "Add the tiers FREE, PRO and ENTERPRISE with concurrencies 1, 5 and 20",
		Example: "  sluice tiers preset\n  sluice tiers preset --queue payments",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				for _, preset := range tenancy.PresetTiers() {
					if _, err := tenancy.AddTier(ctx, store, preset.Tier, a.act("preset")); err != nil && !errors.Is(err, sluice.ErrConflict) {
						return err
					}
					concurrency := fmt.Sprintf("concurrency=%d", *preset.Concurrency)
					if err := a.setLimits(ctx, store, tenancy.Limits{Tier: preset.Tier, Queue: queue}, limitFlags{}, []string{concurrency}); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	command.Flags().StringVar(&queue, "queue", "", "only this queue (default: every queue)")
	return command
}

func (a *app) setTierCommand() *cobra.Command {
	var f limitFlags
	command := &cobra.Command{
		Use:     "set TIER NAME=VALUE…",
		Short:   "Set what a tier grants each tenant: concurrency, rate, burst, weight",
		Example: "  sluice tiers set PRO concurrency=5 weight=2\n  sluice tiers set FREE rate=10/s --queue payments\n  sluice tiers set FREE rate= --queue payments",
		Args:    arguments(2, 5),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				return a.setLimits(ctx, store, tenancy.Limits{Tier: args[0], Queue: f.queue}, f, args[1:])
			})
		},
	}
	command.Flags().StringVar(&f.queue, "queue", "", "only this queue (default: every queue)")
	return command
}

func (a *app) deleteCommand(what sluice.Object, outcome string) *cobra.Command {
	upper := strings.ToUpper(string(what))
	return &cobra.Command{
		Use:     "delete " + upper,
		Short:   fmt.Sprintf("Delete a %s and its limits; %s", what, outcome),
		Example: fmt.Sprintf("  sluice %ss delete %s --reason \"contract ended\"", what, upper),
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				remove := tenancy.Delete
				if what == audit.ObjectTier {
					remove = tenancy.DeleteTier
				}
				if err := remove(ctx, store, args[0], a.act("")); err != nil {
					return fmt.Errorf("%s %.80q: %w", what, args[0], err)
				}
				a.note("deleted %s %s", what, args[0])
				return nil
			})
		},
	}
}
