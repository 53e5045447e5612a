package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/tenancy"
)

// guardFactor is the multiple of the usual figure that needs a person's consent.
const guardFactor = 2

// guardWindow is how far back guard reads an engine's starts.
const guardWindow = 24 * time.Hour

// addYes adds the flag that answers guard.
func addYes(command *cobra.Command) *bool {
	return command.Flags().Bool("yes", false, "do not ask, even for a multiple of the usual")
}

// guard allows a change without a warning. Otherwise it warns, and continues if --yes was given or a person at the
// terminal agrees. If nobody can be asked, it refuses and changes nothing.
func (a *app) guard(warning string, yes bool) error {
	if warning == "" {
		return nil
	}
	refused := codedError{errors.New(warning), exitRefused, "nothing was changed; look at the figure again, and add --yes if it is right"}
	if !yes && !a.canAsk() {
		return refused
	}
	fmt.Fprintf(a.stderr, "warning: %s\n", warning)
	if yes {
		return nil
	}
	fmt.Fprint(a.stderr, "go on? [y/N] ")
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil {
		return errors.Join(refused, err)
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return refused
	}
	return nil
}

// canAsk reports whether standard input is a terminal.
func (a *app) canAsk() bool {
	input, ok := a.stdin.(interruptible)
	if !ok {
		return false
	}
	file, ok := input.reader.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// ceiling returns how much a limit allows; 0 is no limit, above any figure.
func ceiling(limit float64) float64 {
	if limit == 0 {
		return math.Inf(1)
	}
	return limit
}

// stands reports whether a figure is raised to a multiple of the usual; usual 0: none.
func stands(figure, before, usual float64) bool {
	return usual > 0 && figure > before && figure >= guardFactor*usual
}

// guardTenant asks before a tenant gets a multiple of its tier's limits. The flag may change the tier.
func (a *app) guardTenant(ctx context.Context, store sluice.Store, of tenancy.Limits, flag *pflag.Flag, args []string, yes bool) error {
	if len(args) == 0 {
		return nil
	}
	set, err := figures(args)
	if err != nil {
		return err
	}
	tier := flag.Value.String()
	if !flag.Changed {
		tenant, err := tenancy.Given(store).Tenant(ctx, of.Tenant)
		if err != nil && !errors.Is(err, sluice.ErrNotFound) {
			return err
		}
		tier = tenant.Tier
	}
	warning, err := warnOfTenant(ctx, store, of, tier, set)
	if err != nil {
		return err
	}
	return a.guard(warning, yes)
}

// warnOfTenant says what a tenant gets beyond its tier; tier is its future one.
func warnOfTenant(ctx context.Context, store sluice.Store, of tenancy.Limits, tier string, set func(*tenancy.Limits) error) (string, error) {
	if tier == "" {
		return "", nil
	}
	granted, err := tenancy.LimitsOf(ctx, store, tier, "")
	if err != nil {
		return "", err
	}
	own, err := tenancy.LimitsOf(ctx, store, "", of.Tenant)
	if err != nil {
		return "", err
	}
	given := of
	if err := set(&given); err != nil {
		return "", err
	}
	usual, before := nearest(granted, of.Queue), nearest(own, of.Queue)
	var parts []string
	tell := func(name, figure, of string, now, was, tier float64) {
		switch {
		case !stands(now, was, tier):
		case math.IsInf(now, 1):
			parts = append(parts, fmt.Sprintf("no limit of %s instead of the %s", name, of))
		default:
			parts = append(parts, fmt.Sprintf("%s %s, %.3g times the %s", name, figure, now/tier, of))
		}
	}
	if now, was, tier := given.Concurrency, before.Concurrency, usual.Concurrency; now != nil && tier != nil {
		tell("concurrency", draw.Count(*now), draw.Count(*tier), ceiling(float64(*now)), allowed(was, func(n int) float64 { return float64(n) }), float64(*tier))
	}
	if now, was, tier := given.Rate, before.Rate, usual.Rate; now != nil && tier != nil {
		tell("rate", now.String(), tier.String(), ceiling(now.PerSecond()), allowed(was, sluice.Rate.PerSecond), tier.PerSecond())
	}
	if len(parts) == 0 {
		return "", nil
	}
	return fmt.Sprintf("tenant %s would get %s of its tier %s", of.Tenant, strings.Join(parts, " and "), tier), nil
}

// nearest returns the limits in effect in a queue; empty: in every queue. The queue's own come first.
func nearest(all []tenancy.Limits, queue string) (out tenancy.Limits) {
	for _, of := range []string{"", queue} {
		for _, l := range all {
			if l.Queue != of || !l.Until.IsZero() && !l.Until.After(time.Now()) {
				continue
			}
			if l.Concurrency != nil {
				out.Concurrency = l.Concurrency
			}
			if l.Rate != nil {
				out.Rate = l.Rate
			}
		}
	}
	return out
}

// allowed returns how much a tenant's own limit allows; 0: none, so its tier's counts.
func allowed[T any](limit *T, figure func(T) float64) float64 {
	if limit == nil {
		return 0
	}
	return ceiling(figure(*limit))
}

// guardRate asks before a queue's rate rises beyond its engine's recent load.
func (a *app) guardRate(ctx context.Context, store sluice.Store, client *sluice.Client, name string, pairs []string, yes bool) error {
	warning, err := warnOfRate(ctx, store, client, name, pairs)
	if err != nil {
		return err
	}
	return a.guard(warning, yes)
}

// warnOfRate says how far a queue's new rate exceeds its engine's recent load; nothing if no start was counted.
func warnOfRate(ctx context.Context, store sluice.Store, client *sluice.Client, name string, pairs []string) (string, error) {
	queue, err := client.Queue(ctx, name)
	if errors.Is(err, sluice.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	after := queue.Settings
	if err := applySettings(&after, pairs); err != nil {
		return "", err
	}
	before := queue.Settings.Rate
	if after.Engine == "" || after.Rate == before || before.IsZero() {
		return "", nil // nothing is raised
	}
	now := time.Now()
	slots, err := stat.Read(ctx, store, stat.Filter{Queues: []string{name}, Every: stat.Minute, From: now.Add(-guardWindow), To: now.Add(stat.Minute)})
	if err != nil {
		return "", err
	}
	var most int64
	for _, s := range slots {
		most = max(most, s.Counts.Dispatched)
	}
	return rateWarning(after, before, most), nil
}

// rateWarning compares a rate with the engine's most runs in a minute.
func rateWarning(after sluice.Settings, before sluice.Rate, most int64) string {
	took := float64(most) / stat.Minute.Seconds()
	lately := fmt.Sprintf("engine %s took at most %s runs a minute (%.3g/s) in the last day", after.Engine, draw.Count(int(most)), took)
	switch {
	case most == 0:
		return ""
	case after.Rate.IsZero():
		return "the queue would have no rate any more; its " + lately
	case stands(after.Rate.PerSecond(), before.PerSecond(), took):
		return fmt.Sprintf("the rate would be %s, %.3g times what its engine took lately: %s", after.Rate, after.Rate.PerSecond()/took, lately)
	}
	return ""
}
