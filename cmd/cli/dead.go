package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/search"
)

func (a *app) deadCommand() *cobra.Command {
	command := a.listingDead(&cobra.Command{
		Use:     "dead [QUEUE]",
		Short:   "List, group, requeue or delete dead letters",
		Long:    "Alone it lists dead letters, as \"sluice dead ls\" does.",
		Example: "  sluice dead payments\n  sluice dead groups\n  sluice dead requeue --all --queue payments --reason \"bank is back\"",
	})
	requeue := a.requeuing(&cobra.Command{
		Use:   "requeue ID…|-",
		Short: "Requeue dead letters, due now",
		Example: `  sluice dead requeue 01a1fb72-1dea-7abc-8fc6-99e4817522bb --reason "bank is back"
  sluice dead requeue --all --queue payments --limit 10`,
	}, &selection{}, new(bool), new(bool))
	deletion := a.actCommand(&cobra.Command{
		Use:   "delete ID…|-",
		Short: "Delete dead letters; the audit keeps who and why",
		Example: `  sluice dead delete 01a1fb72-1dea-7abc-8fc6-99e4817522bb --reason "paid by hand"
  sluice dead ls payments --label batch=7 -o ids | sluice dead delete -`,
	}, &selection{kind: operation.KindDelete}, func() (verb, error) {
		return verb{name: "deleted", states: []sluice.State{sluice.StateDead}, do: func(ctx context.Context, c *sluice.Client, ids []sluice.ID) error {
			return c.Delete(ctx, ids, a.act(""))
		}}, nil
	})
	command.AddCommand(a.deadListCommand(), a.deadGroupsCommand(), a.deadNoteCommand(), a.redriveCommand(), requeue, deletion)
	return command
}

func (a *app) deadListCommand() *cobra.Command {
	return a.listingDead(&cobra.Command{
		Use:     "ls [QUEUE]",
		Short:   "List dead letters, newest first",
		Example: "  sluice dead ls\n  sluice dead ls payments --tenant acme -o json\n  sluice dead ls --fingerprint 9ac1f00d",
	})
}

// listingDead makes a command list dead letters.
func (a *app) listingDead(list *cobra.Command) *cobra.Command {
	var f filterFlags
	var q queryFlags
	list.Args = arguments(0, 1)
	list.RunE = func(command *cobra.Command, args []string) error {
		filter, err := f.parseIn(args)
		if err != nil {
			return err
		}
		if len(args) > 0 {
			if err := a.checkMeant(command, args[0]); err != nil {
				return err
			}
		}
		if !changed(command, queryNames...) {
			return a.listDead(command.Context(), filter)
		}
		if f.before != "" {
			return usagef("--before does not go with --%s; a larger --limit shows more", queryNames[0])
		}
		filter.States = []sluice.State{sluice.StateDead}
		query, err := q.query(filter)
		if err != nil {
			return err
		}
		return a.searchDead(command.Context(), query, f.limit)
	}
	f.add(list, 100)
	q.add(list)
	list.Flags().StringVar(&f.before, "before", "", "continue after this id")
	return list
}

// checkMeant refuses an unknown queue whose name is nearly a subcommand.
func (a *app) checkMeant(command *cobra.Command, queue string) error {
	command.SuggestionsMinimumDistance = 2
	if len(command.SuggestionsFor(queue)) == 0 {
		return nil
	}
	return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
		if _, err := client.Queue(ctx, queue); errors.Is(err, sluice.ErrNotFound) {
			return unknownCommand(command, queue)
		}
		return nil
	})
}

// parseIn parses the flags, and a queue from the arguments.
func (f *filterFlags) parseIn(args []string) (sluice.JobFilter, error) {
	filter, err := f.parse()
	if err != nil || len(args) == 0 {
		return filter, err
	}
	if f.queue != "" {
		return filter, usagef("the queue is given twice: %s and --queue", args[0])
	}
	filter.Queue = args[0]
	return filter, nil
}

// listDead prints dead letters, with the columns that a person needs to decide.
func (a *app) listDead(ctx context.Context, filter sluice.JobFilter) error {
	filter.States = []sluice.State{sluice.StateDead}
	return a.listJobs(ctx, filter, "no dead letters", deadColumns())
}

// searchDead prints dead letters found by reading them one by one.
func (a *app) searchDead(ctx context.Context, query search.Query, limit int) error {
	return a.withClient(ctx, func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
		found, err := search.Jobs(ctx, store, query, limit)
		if err != nil {
			return err
		}
		if len(found.Jobs) == 0 && a.output == "table" {
			a.note("no dead letters that match among the %s that were looked at", draw.Count(found.Compared))
		} else if err := printList(a, found.Jobs, func(j sluice.Job) string { return j.ID.String() }, deadColumns()); err != nil {
			return err
		}
		if found.More {
			a.note("stopped after %s; there are older ones", draw.Count(found.Compared))
		}
		return nil
	})
}

func deadColumns() []column[sluice.Job] {
	return []column[sluice.Job]{
		{"ID", func(j sluice.Job) string { return j.ID.String() }, false},
		{"QUEUE", func(j sluice.Job) string { return j.Queue }, false},
		{"TENANT", func(j sluice.Job) string { return orDash(j.Tenant) }, false},
		{"ATTEMPTS", func(j sluice.Job) string { return fmt.Sprint(j.Attempts) }, true},
		{"CREATED", func(j sluice.Job) string { return ago(j.CreatedAt) }, true},
		{"DIED", func(j sluice.Job) string { return ago(j.FinishedAt) }, true},
		{"ERROR", func(j sluice.Job) string { return orDash(j.Error) }, false},
	}
}

func (a *app) deadGroupsCommand() *cobra.Command {
	var limit int
	command := &cobra.Command{
		Use:   "groups [QUEUE…]",
		Short: "Group dead letters by cause, largest group first",
		Long: `Groups the newest dead letters by fingerprint: same queue, error class and text, apart from ids,
numbers, times and quotes. Other commands choose groups by fingerprint.`,
		Example: "  sluice dead groups\n  sluice dead groups payments refunds -o json\n  sluice dead redrive --fingerprint 9ac1f00d --rate 20/s --canary 10",
		Args:    arguments(0, 1000),
		RunE: func(command *cobra.Command, args []string) error {
			if limit < 1 {
				return usagef("--limit %d is not at least 1", limit)
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, client *sluice.Client) error {
				found, err := deadletter.Read(ctx, store, args, limit)
				if err != nil {
					return err
				}
				if len(found.Groups) == 0 && a.output == "table" {
					return a.noteNothing(ctx, client, "no dead letters", args...)
				}
				return a.printGroups(found)
			})
		},
	}
	command.Flags().IntVar(&limit, "limit", deadletter.DefaultLimit, "most dead letters to read, newest of each queue first")
	return command
}

func (a *app) printGroups(found deadletter.Groups) error {
	if found.More {
		a.note("stopped after the newest %s; there are older ones, see --limit", draw.Count(found.Compared))
	}
	if a.output == "json" {
		return printJSON(a, found, "  ")
	}
	return printList(a, found.Groups, func(g deadletter.Group) string { return g.Fingerprint }, []column[deadletter.Group]{
		{"FINGERPRINT", func(g deadletter.Group) string { return g.Fingerprint }, false},
		{"COUNT", func(g deadletter.Group) string { return draw.Count(g.Count) }, true},
		{"QUEUE", func(g deadletter.Group) string { return g.Queue }, false},
		{"CLASS", func(g deadletter.Group) string { return g.Class }, false},
		{"TENANTS", func(g deadletter.Group) string { return draw.Count(g.Tenants) }, true},
		{"ATTEMPTS", func(g deadletter.Group) string { return draw.Count(g.Attempts) }, true},
		{"FIRST", func(g deadletter.Group) string { return ago(g.First) }, true},
		{"LAST", func(g deadletter.Group) string { return ago(g.Last) }, true},
		{"SAMPLE", func(g deadletter.Group) string { return g.Sample.String() }, false},
		{"STATE", deadletter.Group.State, false},
		{"OWNER", ownerOf, false},
		{"MESSAGE", func(g deadletter.Group) string { return orDash(g.Message) }, false},
	})
}

func ownerOf(g deadletter.Group) string {
	if g.Note == nil {
		return "-"
	}
	return orDash(g.Note.Owner)
}

func (a *app) deadNoteCommand() *cobra.Command {
	var text, owner string
	var resolved, open bool
	command := &cobra.Command{
		Use:   "note FINGERPRINT",
		Short: "Show or change the note, the owner and the state of a group",
		Long: `Without flags it shows the note on a group of dead letters. The note stays when the dead letters go.
If a job of a resolved group dies later, the group came back.`,
		Example: `  sluice dead note 9ac1f00d
  sluice dead note 9ac1f00d --text "the bank's certificate ran out" --owner team-money
  sluice dead note 9ac1f00d --resolved --reason "new certificate"`,
		Args: arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			if resolved && open {
				return usagef("--resolved and --open exclude each other")
			}
			var change deadletter.NoteChange
			if command.Flags().Changed("text") {
				change.Text = &text
			}
			if command.Flags().Changed("owner") {
				change.Owner = &owner
			}
			if resolved || open {
				change.Resolved = &resolved
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				note, err := deadletter.NoteOf(ctx, store, args[0])
				if err == nil && change != (deadletter.NoteChange{}) {
					note, err = deadletter.Change(ctx, store, args[0], change, a.act(""))
				}
				if err != nil {
					return err
				}
				return a.printOne(note, func() error { return a.printNote(note) })
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&text, "text", "", "new text of the note; empty: none")
	flags.StringVar(&owner, "owner", "", "person or team that looks after the cause; empty: nobody")
	allowEmpty(flags, "text", "owner")
	flags.BoolVar(&resolved, "resolved", false, "the cause is resolved as of now")
	flags.BoolVar(&open, "open", false, "the cause is open again")
	return command
}

func (a *app) printNote(note deadletter.Note) error {
	line, instant := detailLines(a.stdout, time.RFC3339)
	line("group", note.Fingerprint)
	line("text", orDash(note.Text))
	line("owner", orDash(note.Owner))
	instant("resolved", note.ResolvedAt)
	instant("changed", note.ChangedAt)
	line("by", note.ChangedBy)
	line("reason", note.Reason)
	return nil
}

func (a *app) redriveCommand() *cobra.Command {
	s := selection{kind: operation.KindRequeue}
	command := &cobra.Command{
		Use:   "redrive [QUEUE]",
		Short: "Requeue all dead letters of a group or query, at a rate, with a canary",
		Long: `Starts an operation on all matching dead letters that died before it began. Upkeep carries it out,
even when this command, which shows progress, ends or is interrupted. --canary requeues that many
first and waits for them. With --stop-if-failed the operation stops if more than that share of the
canary, or of a later sample, dies again.`,
		Example: `  sluice dead redrive --fingerprint 9ac1f00d --rate 20/s --canary 10 --stop-if-failed 10% --reason "bank is back"
  sluice dead redrive payments --error "connection refused" --dry-run
  sluice dead redrive payments --tenant acme --detach --reason "account opened"`,
		Args: arguments(0, 1),
		RunE: func(command *cobra.Command, args []string) error {
			filter, err := s.filter.parseIn(args)
			if err != nil {
				return err
			}
			if len(args) == 0 && !s.dryRun && !changed(command, filterNames...) {
				return usagef("without a queue or a filter every dead letter of the store would be requeued; name a QUEUE, or look with --dry-run")
			}
			filter.States = []sluice.State{sluice.StateDead}
			return a.operate(command.Context(), &s, filter, "requeued")
		},
	}
	s.filter.add(command, 0)
	command.Flags().Lookup("limit").Usage = "most jobs; 0: all"
	s.query.add(command)
	s.pace.add(command, s.kind)
	command.Flags().BoolVar(&s.dryRun, "dry-run", false, "count the matches, show some, requeue none")
	return command
}
