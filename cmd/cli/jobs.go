package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/edit"
	"github.com/sluice-queue/sluice/hold"
	jobprogress "github.com/sluice-queue/sluice/progress"
	"github.com/sluice-queue/sluice/search"
)

// filterFlags select jobs.
type filterFlags struct {
	queue, tenant, key, before string
	batch                      string
	states, labels             []string
	limit                      int
	minAttempts, minRecoveries int
	oldestFirst                bool
}

// add adds the flags. A limit of 0 is none.
func (f *filterFlags) add(command *cobra.Command, limit int) {
	flags := command.Flags()
	flags.StringVar(&f.queue, "queue", "", "only this queue, or the queues of this group, such as 'mail.*'")
	flags.StringVar(&f.tenant, "tenant", "", "only this tenant")
	flags.StringVar(&f.key, "key", "", "only this key")
	flags.StringVar(&f.batch, "batch", "", "only the batch with this id, and the batches in it")
	flags.StringArrayVar(&f.labels, "label", nil, "with label NAME=VALUE; repeatable")
	flags.IntVar(&f.minAttempts, "min-attempts", 0, "minimum of failed attempts")
	flags.IntVar(&f.minRecoveries, "min-recoveries", 0, "minimum of recoveries")
	flags.IntVar(&f.limit, "limit", limit, "most jobs")
}

// addStates adds --state, for commands on jobs of several states.
func (f *filterFlags) addStates(command *cobra.Command) {
	command.Flags().StringSliceVar(&f.states, "state", nil, "in these states: queued, claimed, dispatched, uncertain, completed, dead, cancelled")
	_ = command.RegisterFlagCompletionFunc("state", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, state := range sluice.States() {
			names = append(names, string(state))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

func (f *filterFlags) parse() (sluice.JobFilter, error) {
	out := sluice.JobFilter{Queue: f.queue, Tenant: f.tenant, Key: f.key, Limit: f.limit, MinAttempts: f.minAttempts, MinRecoveries: f.minRecoveries, OldestFirst: f.oldestFirst}
	if f.minAttempts < 0 || f.minRecoveries < 0 {
		return out, usagef("--min-attempts and --min-recoveries must be at least 0")
	}
	for _, text := range f.states {
		state := sluice.State(text)
		if !slices.Contains(sluice.States(), state) {
			hint := ""
			if slices.Contains([]string{"ready", "scheduled", "retrying", "blocked"}, text) {
				hint = "; jobs that are shown as " + text + " are queued"
			}
			return out, usagef("--state %q must be one of %s%s", text, strings.Trim(fmt.Sprint(sluice.States()), "[]"), hint)
		}
		out.States = append(out.States, state)
	}
	var err error
	if out.Labels, err = parseLabels(f.labels); err != nil {
		return out, err
	}
	for text, into := range map[string]*sluice.ID{f.before: &out.Before, f.batch: &out.Batch} {
		if text == "" {
			continue
		}
		if *into, err = parseID(text); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (a *app) jobsCommand() *cobra.Command {
	var f filterFlags
	var held bool
	var where, cursor string
	command := &cobra.Command{
		Use:     "jobs",
		Short:   "List jobs, newest or oldest first",
		Example: "  sluice jobs --queue mail --state queued,claimed\n  sluice jobs --tenant acme --label kind=welcome --state queued -o ids | sluice cancel -\n  sluice jobs --queue mail --min-attempts 6\n  sluice jobs --where 'state:dead queue:mail.* attempts:>=3 error:~timeout age:<1d'",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			if changed(command, "where", "cursor") {
				if changed(command, "queue", "tenant", "key", "label", "state", "batch", "min-attempts", "min-recoveries", "before", "held") {
					return usagef("--where says it all; it goes with --cursor, --limit and --oldest-first alone")
				}
				return a.listWhere(command.Context(), where, cursor, f)
			}
			filter, err := f.parse()
			if err != nil {
				return err
			}
			if held && f.oldestFirst {
				return usagef("--held lists the newest job first; it does not go with --oldest-first")
			}
			if held {
				return a.listHeld(command.Context(), filter)
			}
			return a.listJobs(command.Context(), filter, "no jobs", jobColumns())
		},
	}
	f.add(command, 100)
	f.addStates(command)
	command.Flags().StringVar(&f.before, "before", "", "continue after this id")
	command.Flags().BoolVar(&f.oldestFirst, "oldest-first", false, "the oldest job first; --before is then the id after which to continue")
	command.Flags().StringVar(&where, "where", "", whereHelp)
	command.Flags().StringVar(&cursor, "cursor", "", "with --where: continue at this place")
	command.Flags().BoolVar(&held, "held", false, "only held jobs, with who holds them and why")
	return command
}

// listJobsOfGroup prints jobs of a group, queue by queue.
func (a *app) listJobsOfGroup(ctx context.Context, store sluice.Store, filter sluice.JobFilter, nothing string, columns []column[sluice.Job]) error {
	if !filter.Before.IsZero() || filter.OldestFirst {
		return usagef("--before and --oldest-first need one queue; %s is a group: with --where 'queue:%[1]s', --oldest-first does", filter.Queue)
	}
	found, err := search.Jobs(ctx, store, search.Query{
		Queue: filter.Queue, Tenant: filter.Tenant, Key: filter.Key, States: filter.States, Labels: filter.Labels, Batch: filter.Batch,
		MinAttempts: filter.MinAttempts, MinRecoveries: filter.MinRecoveries,
	}, filter.Limit)
	if err != nil {
		return err
	}
	if len(found.Jobs) == 0 && !found.More && a.output == "table" {
		a.note("%s", nothing)
		return nil
	}
	if err := printList(a, found.Jobs, func(j sluice.Job) string { return j.ID.String() }, columns); err != nil {
		return err
	}
	if found.More {
		a.note("more: name one queue of the group, or raise --limit")
	}
	return nil
}

// listJobs prints a page of jobs, and how to get the next.
func (a *app) listJobs(ctx context.Context, filter sluice.JobFilter, nothing string, columns []column[sluice.Job]) error {
	return a.withClient(ctx, func(ctx context.Context, store sluice.Store, client *sluice.Client) error {
		if sluice.IsGroup(filter.Queue) {
			return a.listJobsOfGroup(ctx, store, filter, nothing, columns)
		}
		page, err := client.Jobs(ctx, filter)
		if err != nil {
			return err
		}
		if len(page.Jobs) == 0 && page.Next.IsZero() && a.output == "table" {
			return a.noteNothing(ctx, client, nothing, filter.Queue)
		}
		if columns, err = withProgress(ctx, store, page.Jobs, columns); err != nil {
			return err
		}
		if err := printList(a, page.Jobs, func(j sluice.Job) string { return j.ID.String() }, columns); err != nil {
			return err
		}
		switch {
		case page.Next.IsZero():
		case len(page.Jobs) < filter.Limit:
			a.note("only a part of the jobs was looked at; go on with --before %s, or name a tenant or a key", page.Next)
		default:
			a.note("more: --before %s", page.Next)
		}
		return nil
	})
}

// noteNothing says that a list is empty, and which of its queues does not exist at all. An empty queue is any.
func (a *app) noteNothing(ctx context.Context, client *sluice.Client, nothing string, queues ...string) error {
	unknown, err := firstUnknown(ctx, client, queues...)
	if err != nil {
		return err
	}
	if unknown != nil {
		nothing += fmt.Sprintf(": %v; %s", unknown, unknown.todo)
	}
	a.note("%s", nothing)
	return nil
}

// noQueue says that a queue does not exist.
func noQueue(name string) *codedError {
	return &codedError{fmt.Errorf("no queue is named %s", name), exitNotFound, "`sluice queues` lists all"}
}

// firstUnknown returns the error of the first queue that does not exist; nil: all do. An empty queue is any.
func firstUnknown(ctx context.Context, client *sluice.Client, queues ...string) (*codedError, error) {
	for _, queue := range queues {
		if queue == "" || sluice.IsGroup(queue) {
			continue
		}
		if _, err := client.Queue(ctx, queue); errors.Is(err, sluice.ErrNotFound) {
			return noQueue(queue), nil
		} else if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func jobColumns() []column[sluice.Job] {
	return []column[sluice.Job]{
		{"ID", func(j sluice.Job) string { return j.ID.String() }, false},
		{"QUEUE", func(j sluice.Job) string { return j.Queue }, false},
		{"TENANT", func(j sluice.Job) string { return orDash(j.Tenant) }, false},
		{"STATE", func(j sluice.Job) string { return j.Label(time.Now()) }, false},
		{"PRIO", func(j sluice.Job) string { return fmt.Sprint(j.Priority) }, true},
		{"DUE", func(j sluice.Job) string { return ago(j.DueAt) }, true},
		{"ATTEMPTS", func(j sluice.Job) string { return fmt.Sprint(j.Attempts) }, true},
		{"HOLDER", func(j sluice.Job) string { return orDash(j.Holder) }, false},
		{"ERROR", func(j sluice.Job) string { return orDash(j.Error) }, false},
	}
}

// jobDetail is everything known about a job.
type jobDetail struct {
	sluice.Job
	// Version is what an edit can expect. Empty: the job does not wait.
	Version string     `json:"version,omitempty"`
	Hold    *hold.Held `json:"hold,omitempty"`
	// Progress is the last report of the running attempt. Nil: it has not reported.
	Progress *jobprogress.Report `json:"progress,omitempty"`

	Failed []sluice.Attempt    `json:"failed_attempts"`
	Audit  []sluice.AuditEntry `json:"audit"`
}

func (a *app) jobCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "job ID",
		Short:   "Show everything about a job",
		Example: "  sluice job 01a1fb72-1dea-7abc-8fc6-99e4817522bb\n  sluice job 01a1fb72-1dea-7abc-8fc6-99e4817522bb -o json",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withJob(command.Context(), args[0], func(ctx context.Context, store sluice.Store, client *sluice.Client, id sluice.ID) error {
				detail, err := lookUp(ctx, store, client, id)
				if err != nil {
					return fmt.Errorf("job %s: %w", id, err)
				}
				return a.printNamed(detail, id.String(), func() error { return a.printDetail(detail) })
			})
		},
	}
}

// withJob calls do with the job that the argument names.
func (a *app) withJob(ctx context.Context, text string, do func(context.Context, sluice.Store, *sluice.Client, sluice.ID) error) error {
	id, err := parseID(text)
	if err != nil {
		return err
	}
	return a.withClient(ctx, func(ctx context.Context, store sluice.Store, client *sluice.Client) error {
		return do(ctx, store, client, id)
	})
}

func lookUp(ctx context.Context, store sluice.Store, client *sluice.Client, id sluice.ID) (jobDetail, error) {
	var detail jobDetail
	var err error
	if detail.Job, err = client.Job(ctx, id); err != nil {
		return detail, err
	}
	if held, is, err := hold.Of(ctx, store, detail.Job); err != nil {
		return detail, err
	} else if is {
		detail.Hold = &held
	}
	if detail.State == sluice.StateClaimed {
		reports, err := jobprogress.Of(ctx, store, id)
		if err != nil {
			return detail, err
		}
		if report, said := reports[id]; said {
			detail.Progress = &report
		}
	}
	if detail.State == sluice.StateQueued && !detail.Withheld {
		detail.Version = edit.VersionOf(detail.Job)
	}
	if detail.Failed, err = client.Attempts(ctx, id); err != nil {
		return detail, err
	}
	detail.Audit, err = client.Audit(ctx, sluice.AuditFilter{JobID: id, Limit: 100})
	if detail.Failed == nil {
		detail.Failed = []sluice.Attempt{} // JSON has an empty list, not null
	}
	if detail.Audit == nil {
		detail.Audit = []sluice.AuditEntry{}
	}
	return detail, err
}

// maxAfterShown is how many of the jobs that one runs after are printed.
const maxAfterShown = 20

func (a *app) printDetail(d jobDetail) error {
	var text bytes.Buffer
	line, instant := detailLines(&text, time.RFC3339Nano)
	line("id", d.ID.String())
	line("queue", d.Queue)
	line("tenant", d.Tenant)
	line("state", d.Label(time.Now()))
	line("priority", fmt.Sprint(d.Priority))
	line("key", d.Key)
	line("order key", d.OrderKey)
	line("limit key", d.LimitKey)
	line("cost", countText(d.Cost))
	for i, id := range d.After {
		if i == maxAfterShown {
			line("after", fmt.Sprintf("%d more; see -o json", len(d.After)-i))
			break
		}
		line("after", strings.TrimSpace(id.String()+" "+string(d.AfterFailures[id])))
	}
	line("after failure", string(d.AfterFailure))
	if !d.Batch.IsZero() {
		line("batch", d.Batch.String())
	}
	if len(d.Labels) > 0 {
		line("labels", formatLabels(d.Labels))
	}
	line("generation", fmt.Sprint(d.Generation))
	line("version", d.Version)
	attempts := fmt.Sprint(d.Attempts)
	if d.MaxAttempts > 0 {
		attempts += fmt.Sprintf(" of at most %d", d.MaxAttempts)
	}
	line("attempts", attempts+fmt.Sprintf("  (releases %d, recoveries %d)", d.Releases, d.Recoveries))
	line("timeout", durationText(d.Timeout))
	if d.Hold != nil {
		line("hold", oneLine(d.Hold.String()))
	} else if !d.BlockedBy.IsZero() {
		line("blocked by", d.BlockedBy.String())
	}
	line("holder", d.Holder)
	if d.Progress != nil {
		line("progress", fmt.Sprintf("%s  (%s)", d.Progress, ago(d.Progress.At)))
	}
	line("ref", d.Ref)
	instant("created", d.CreatedAt)
	instant("due", d.DueAt)
	instant("expires", d.ExpiresAt)
	instant("claimed", d.ClaimedAt)
	instant("dispatched", d.DispatchedAt)
	instant("lease until", d.LeaseUntil)
	instant("finished", d.FinishedAt)
	line("error", oneLine(d.Error))
	if d.Withheld {
		line("payload", "not shown, nor checkpoint and result: this role may not read them")
	}
	line("payload", compact(d.Payload))
	line("checkpoint", compact(d.Checkpoint))
	line("result", compact(d.Result))
	printFailed(&text, line, d.Failed)
	for _, e := range slices.Backward(d.Audit) {
		move := string(e.Event)
		if e.From != "" || e.To != "" {
			move += fmt.Sprintf(" (%s → %s)", orDash(string(e.From)), orDash(string(e.To)))
		}
		line("audit", fmt.Sprintf("%s %s by %s: %s", e.At.Format(time.RFC3339), move, e.Actor, orDash(e.Reason)))
	}
	_, err := a.stdout.Write(text.Bytes())
	return err
}

// printFailed prints failed attempts, and the stacks of those that panicked.
func printFailed(text *bytes.Buffer, line func(name, value string), attempts []sluice.Attempt) {
	for _, failed := range attempts {
		line(fmt.Sprintf("failed %d/%d", failed.Generation, failed.Attempt), fmt.Sprintf("%s on %s: %s", failed.FailedAt.Format(time.RFC3339), failed.Holder, oneLine(failed.Error)))
		for stack := range strings.Lines(failed.Stack) {
			fmt.Fprintf(text, "%-13s   %s\n", "", strings.TrimSpace(strings.Map(printable, stack)))
		}
	}
}

// countText formats a number; empty for 0.
func countText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// durationText formats a duration; empty for 0.
func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return sluice.FormatDuration(d)
}

func formatLabels(labels map[string]string) string {
	var pairs []string
	for name, value := range labels {
		pairs = append(pairs, name+"="+value)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, " ")
}

// compact formats JSON on one line, safe for a terminal.
func compact(text json.RawMessage) string {
	if len(text) == 0 {
		return ""
	}
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		return oneLine(string(text))
	}
	return strings.Map(printable, out.String())
}
