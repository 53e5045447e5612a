package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/edit"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/schema"
)

// editFlags are the options of `edit`.
type editFlags struct {
	priority                       int
	due, payload, tenant, expected string
	timeout                        string
	labels                         []string
	limitKey                       string
	cost                           int
	noLabels                       bool

	// These are for many jobs.
	all              bool
	postpone, spread time.Duration
	selection        selection
}

// editFlagsOfAll are the flags that go only with --all, and editFlagsOfOne those that go only with one job.
var (
	editFlagsOfAll = []string{"where", "postpone", "spread", "limit", "dry-run", "rate", "detach"}
	editFlagsOfOne = []string{"due", "timeout", "payload-file", "limit-key", "cost", "label", "no-labels", "expect"}
)

func (a *app) editCommand() *cobra.Command {
	var f editFlags
	command := &cobra.Command{
		Use:   "edit ID|--all --where FILTER",
		Short: "Change a waiting job: payload, priority, due time, timeout, labels, tenant, limit key, cost",
		Long: `Changes a waiting job; fields that no flag names stay. The new payload must pass the checks of an
enqueue. With --expect, the edit is refused if somebody changed or ran the job since "sluice job"
showed that version. The audit has the changed fields before and after, and of a payload the size.

With --all, upkeep changes the priority, the tenant or the due time of all waiting jobs that match. --postpone
and --spread count from the due time of each job, or from now if that is past. --spread adds a part
of it by chance, so that jobs that are due at once are not any longer.`,
		Example: `  sluice edit 01a1fb72-1dea-7abc-8fc6-99e4817522bb --priority 1 --due 2026-12-01T16:00:00Z --reason "urgent"
  sluice edit 01a1fb72-1dea-7abc-8fc6-99e4817522bb --payload-file report.json --label kind=report
  sluice edit --all --where "queue:mail due:<1h" --priority 9 --spread 30m --dry-run
  sluice edit --all --where tenant:acme --tenant acme-eu --reason "the customer moves"
  sluice edit --all --where queue:mail --postpone 2h --rate 500/s --reason "the server moves"`,
		Args: arguments(0, 1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := f.check(command, args); err != nil {
				return err
			}
			if f.all {
				f.selection.edit = &operation.Edit{Priority: f.priority, Postpone: f.postpone, Spread: f.spread}
				if command.Flags().Changed("tenant") {
					f.selection.edit.Tenant = &f.tenant
				}
				return a.operate(command.Context(), &f.selection, sluice.JobFilter{}, "edited")
			}
			change, err := a.changeOf(command, f)
			if err != nil {
				return err
			}
			return a.withJob(command.Context(), args[0], func(ctx context.Context, store sluice.Store, _ *sluice.Client, id sluice.ID) error {
				return a.editJob(ctx, store, id, change, f.expected)
			})
		},
	}
	flags := command.Flags()
	flags.IntVar(&f.priority, "priority", 0, "from 1 (first) to 10 (last)")
	flags.StringVar(&f.due, "due", "", "earliest start, such as 2026-12-01T16:00:00Z, or now")
	flags.StringVar(&f.timeout, "timeout", "", "most time of an attempt, such as 90s or 2h; 0s: as the handler or the queue says")
	flags.StringVar(&f.payload, "payload-file", "", "file with the new payload, as JSON; - for standard input")
	flags.StringVar(&f.tenant, "tenant", "", "new tenant; empty: none")
	flags.StringVar(&f.limitKey, "limit-key", "", "value, such as a host, by which limits with per=key bound the job; empty: none")
	flags.IntVar(&f.cost, "cost", 0, "units, such as tokens, that the job takes of limits with units=cost; 0: 1")
	flags.StringArrayVar(&f.labels, "label", nil, "label as NAME=VALUE, instead of all labels; repeatable")
	flags.BoolVar(&f.noLabels, "no-labels", false, "remove all labels")
	flags.StringVar(&f.expected, "expect", "", "version that \"sluice job\" showed (default: the present one)")
	allowEmpty(flags, "tenant", "limit-key")
	f.selection.kind = operation.KindEdit
	flags.BoolVar(&f.all, "all", false, "edit all jobs that match --where")
	flags.StringVar(&f.selection.query.where, "where", "", "with --all: "+whereHelp)
	flags.Var(duration{&f.postpone}, "postpone", "with --all: by how much later each job is due, such as 2h")
	flags.Var(duration{&f.spread}, "spread", "with --all: over how much time more to spread the jobs, such as 30m")
	flags.IntVar(&f.selection.filter.limit, "limit", 0, "with --all: most jobs; 0: all")
	flags.BoolVar(&f.selection.dryRun, "dry-run", false, "with --all: count only, edit none")
	f.selection.pace.add(command, operation.KindEdit)
	return command
}

// check refuses flags that would have no effect.
func (f *editFlags) check(command *cobra.Command, args []string) error {
	wrong, where := editFlagsOfAll, "only goes with --all"
	if f.all {
		wrong, where = editFlagsOfOne, "goes with one job, not with --all"
	}
	for _, name := range wrong {
		if command.Flags().Changed(name) {
			return usagef("--%s %s", name, where)
		}
	}
	switch {
	case f.all && len(args) > 0, !f.all && len(args) == 0:
		return usagef("give either the id of a job or --all")
	case f.all && f.selection.query.where == "":
		return usagef("--all without a filter would edit every waiting job of the store; say which with --where")
	case f.all && !changed(command, "priority", "tenant", "postpone", "spread"):
		return usagef("name what to change: --priority, --tenant, --postpone or --spread")
	}
	return nil
}

// changeOf turns the flags into a change.
func (a *app) changeOf(command *cobra.Command, f editFlags) (c edit.Change, err error) {
	given := command.Flags().Changed
	switch {
	case given("priority") && f.priority == 0:
		return c, usagef("--priority 0 must be from 1 (first) to 10 (last)")
	case f.noLabels && given("label"):
		return c, usagef("give either --label or --no-labels")
	case !changed(command, "priority", "due", "timeout", "payload-file", "tenant", "limit-key", "cost", "label", "no-labels"):
		return c, usagef("name what to change: --priority, --due, --timeout, --payload-file, --tenant, --limit-key, --cost, --label or --no-labels")
	}
	c.Priority = f.priority
	if f.due == "now" {
		c.DueAt = time.Now()
	} else if c.DueAt, err = parseTime("--due", f.due); err != nil {
		return c, err
	}
	if given("timeout") {
		timeout, err := sluice.ParseDuration(f.timeout)
		if err != nil {
			return c, usagef("--timeout: %w", err)
		}
		c.Timeout = &timeout
	}
	if given("tenant") {
		c.Tenant = &f.tenant
	}
	if given("limit-key") {
		c.LimitKey = &f.limitKey
	}
	if given("cost") {
		c.Cost = &f.cost
	}
	if c.Labels, err = parseLabels(f.labels); err != nil {
		return c, err
	}
	if f.noLabels {
		c.Labels = map[string]string{}
	}
	if f.payload == "-" {
		c.Payload, err = io.ReadAll(a.stdin)
	} else if given("payload-file") {
		c.Payload, err = os.ReadFile(f.payload)
	}
	if err != nil {
		return c, usagef("read the payload: %w", err)
	}
	return c, nil
}

// editJob changes a job. Expected is the version that the person has seen; empty: any.
func (a *app) editJob(ctx context.Context, store sluice.Store, id sluice.ID, change edit.Change, expected string) error {
	job, err := store.Job(ctx, id)
	if err != nil {
		return fmt.Errorf("job %s: %w", id, err)
	}
	if expected != "" && expected != edit.VersionOf(job) {
		return codedError{
			error: fmt.Errorf("edit job %s: its version is not %.40q; somebody changed or ran it since: %w", id, expected, sluice.ErrConflict), code: exitRefused,
			todo: fmt.Sprintf("look at it again with `sluice job %s`, and repeat the edit with the version that it shows", id),
		}
	}
	if err := edit.Job(ctx, store, job, change, a.act(""), schema.New()); err != nil {
		return err
	}
	return a.printActed(verb{name: "edited"}, acted{Matched: 1, Done: 1})
}
