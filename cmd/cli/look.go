package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/dispatcher"
)

func (a *app) auditCommand() *cobra.Command {
	var object, name, queue, job, actor, event, since, until string
	var before int64
	var limit int
	command := &cobra.Command{
		Use:   "audit",
		Short: "Show who did what, when and why, newest first",
		Long: `Shows entries of the audit. --actor and --event have no index: such a search stops after 1 s with what
it has found, and says how to go on.`,
		Example: "  sluice audit --job 01a1fb72-1dea-7abc-8fc6-99e4817522bb\n  sluice audit --queue payments\n  sluice audit --object tenant --name acme\n  sluice audit --object operation\n  sluice audit --actor ada@office --event pause --since 2026-11-26T16:00:00Z",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			if object != "" && !slices.Contains(audit.Objects(), sluice.Object(object)) {
				return usagef("--object %q must be one of %s", object, kindsOfObjects())
			}
			if queue != "" {
				if name != "" || object != "" {
					return usagef("--queue is the queue and its jobs; give it without --name and --object")
				}
				name = queue
			}
			filter := audit.Filter{AuditFilter: sluice.AuditFilter{
				Object: sluice.Object(object), Name: name, Actor: actor, Event: sluice.Event(event), Before: before, Limit: limit,
			}}
			var failed [3]error
			if job != "" {
				filter.JobID, failed[0] = parseID(job)
			}
			filter.From, failed[1] = parseTime("--since", since)
			filter.To, failed[2] = parseTime("--until", until)
			if err := errors.Join(failed[:]...); err != nil {
				return err
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				return a.printAudit(ctx, store, filter)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&object, "object", "", "only this kind: one of "+kindsOfObjects())
	flags.StringVar(&name, "name", "", "only this queue, tenant, tier, alert or operation; for jobs, their queue")
	flags.StringVar(&queue, "queue", "", "only this queue and its jobs")
	flags.StringVar(&job, "job", "", "only this job")
	flags.StringVar(&actor, "actor", "", "only acts of this person or program; ada finds `ada by token shop`, too")
	flags.StringVar(&event, "event", "", "only this event, such as pause or cancel")
	flags.StringVar(&since, "since", "", "only entries from this instant on")
	flags.StringVar(&until, "until", "", "only entries before this instant")
	flags.Int64Var(&before, "before", 0, "continue after this number")
	flags.IntVar(&limit, "limit", 100, "most entries")
	command.AddCommand(a.auditVerifyCommand(), a.auditHeadCommand(), a.auditKeepCommand())
	return command
}

// printAudit prints a page of the audit, and says how to go on if the search stopped at its bound.
func (a *app) printAudit(ctx context.Context, store sluice.Store, filter audit.Filter) error {
	page, err := audit.Search(ctx, store, filter)
	if err != nil {
		return err
	}
	if page.Next > 0 && len(page.Entries) < cmp.Or(filter.Limit, 100) {
		a.note("there may be older entries: continue with --before %d", page.Next)
	} else if len(page.Entries) == 0 && a.output == "table" {
		a.note("nothing was done, or nothing that matches")
	}
	if len(page.Entries) == 0 && a.output == "table" {
		return nil
	}
	return printList(a, page.Entries, func(e sluice.AuditEntry) string { return fmt.Sprint(e.Seq) }, auditColumns())
}

// kindsOfObjects are the kinds of things in the audit, as words.
func kindsOfObjects() string { return strings.Trim(fmt.Sprint(audit.Objects()), "[]") }

func auditColumns() []column[sluice.AuditEntry] {
	return []column[sluice.AuditEntry]{
		{"SEQ", func(e sluice.AuditEntry) string { return fmt.Sprint(e.Seq) }, true},
		{"WHEN", func(e sluice.AuditEntry) string { return e.At.Format(time.RFC3339) }, false},
		{"BY", func(e sluice.AuditEntry) string { return orDash(e.Actor) }, false},
		{"EVENT", func(e sluice.AuditEntry) string { return string(e.Event) }, false},
		{"OBJECT", func(e sluice.AuditEntry) string {
			if e.Object == audit.ObjectJob {
				return "job " + e.JobID.String()
			}
			return string(e.Object) + " " + e.Name
		}, false},
		{"STATE", func(e sluice.AuditEntry) string {
			if e.From == e.To {
				return orDash(string(e.To))
			}
			return orDash(string(e.From)) + " → " + orDash(string(e.To))
		}, false},
		{"REASON", func(e sluice.AuditEntry) string { return orDash(cmp.Or(e.Reason, batchOf(e))) }, false},
	}
}

// batchOf describes the outcome of a batch of jobs; empty: the entry is no batch.
func batchOf(e sluice.AuditEntry) string {
	var done dispatcher.Cycle
	if e.Event != audit.EventBatch || json.Unmarshal(e.After, &done) != nil {
		return ""
	}
	text := fmt.Sprintf("%d claimed", done.Claimed)
	for _, part := range []struct {
		count int
		word  string
	}{{done.Dispatched, "dispatched"}, {done.Buried, "buried"}, {done.Released, "released"}, {done.Held, "held"}} {
		if part.count > 0 {
			text += fmt.Sprintf(", %d %s", part.count, part.word)
		}
	}
	return text
}

// buildVersion is the output of `version`.
type buildVersion struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
}

// String formats the version on one line.
func (v buildVersion) String() string {
	return strings.Join(strings.Fields("sluice "+v.Version+" "+v.Commit+" "+v.Go), " ")
}

// built reads the version of this program.
func built() buildVersion {
	v := buildVersion{Version: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version, v.Go = info.Main.Version, info.GoVersion
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value
		}
	}
	return v
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version of this program",
		Example: "  sluice version\n  sluice version -o json",
		Args:    arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			v := built()
			return a.printOne(v, func() error {
				_, err := fmt.Fprintln(a.stdout, v)
				return err
			})
		},
	}
}
