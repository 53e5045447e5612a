package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/limit"
)

func (a *app) limitsCommand() *cobra.Command {
	command := group(&cobra.Command{
		Use:   "limits",
		Short: "Control limits that several queues share",
		Example: "  sluice limits set bank rate=500/5s concurrency=200 --reason \"the bank's contract\"\n" +
			"  sluice settings set payments limits=bank --reason \"the bank's contract\"\n  sluice limits ls\n  sluice limits close bank --for 10m --reason \"bank is down\"",
	})
	command.AddCommand(a.limitsListCommand(), a.limitGetCommand(), a.limitSetCommand(), a.limitCloseCommand(), a.limitOpenCommand(), a.limitUndoCommand(), a.limitDeleteCommand())
	return command
}

// limitRow is a limit with its use, as -o json shows it.
type limitRow struct{ wire.LimitView }

// limitState says whether a limit is open, and until when it is closed.
func limitState(l limit.Limit, now time.Time) string {
	switch {
	case !l.ClosedAt(now):
		return "open"
	case l.ClosedUntil.IsZero():
		return "closed"
	}
	return "closed until " + l.ClosedUntil.Format(time.RFC3339)
}

func (a *app) limitsListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List limits by name, with their queues and the jobs in flight",
		Example: "  sluice limits ls\n  sluice limits ls -o json",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				uses, err := limit.Uses(ctx, store)
				if err != nil {
					return err
				}
				rows := make([]limitRow, len(uses))
				for i, use := range uses {
					rows[i] = limitRow{wire.LimitViewOf(use)}
				}
				if len(rows) == 0 && a.output == "table" {
					a.note("no limits; `sluice limits set NAME rate=500/5s` makes one, and `sluice settings set QUEUE limits=NAME` shares it")
					return nil
				}
				now := time.Now()
				return printList(a, rows, func(r limitRow) string { return r.Name }, []column[limitRow]{
					{"LIMIT", func(r limitRow) string { return r.Name }, false},
					{"FIGURES", func(r limitRow) string { return r.String() }, false},
					{"STATE", func(r limitRow) string { return limitState(r.Limit, now) }, false},
					{"IN FLIGHT", func(r limitRow) string { return draw.Count(r.InFlight) }, true},
					{"QUEUES", func(r limitRow) string { return orDash(strings.Join(r.Queues, " ")) }, false},
					{"CHANGED", func(r limitRow) string { return ago(r.ChangedAt) }, true},
					{"BY", func(r limitRow) string { return r.ChangedBy }, false},
				})
			})
		},
	}
}

func (a *app) limitGetCommand() *cobra.Command {
	var of []string
	command := &cobra.Command{
		Use:        "get LIMIT",
		SuggestFor: []string{"show"},
		Short:      "Show a limit, its queues and how much of it is in use",
		Example:    "  sluice limits get bank\n  sluice limits get host --key example.com",
		Args:       arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				if _, err := limit.Read(ctx, store, args[0]); err != nil {
					return limitError(err)
				}
				uses, err := limit.Uses(ctx, store, args[0])
				if err != nil || len(uses) == 0 {
					return err
				}
				keys, err := limit.KeyUses(ctx, store, args[0], of...)
				if err != nil {
					return err
				}
				row := limitRow{wire.LimitViewOf(uses[0], keys...)}
				return a.printNamed(row, args[0], func() error { return a.printLimit(row) })
			})
		},
	}
	command.Flags().StringArrayVar(&of, "key", nil, "limit key to show; repeatable (default: those that are closed or have waiting jobs)")
	return command
}

func (a *app) printLimit(r limitRow) error {
	var text bytes.Buffer
	line, _ := detailLines(&text, time.RFC3339)
	line("limit", r.Name)
	line("figures", r.String())
	line("state", limitState(r.Limit, time.Now()))
	line("queues", orDash(strings.Join(r.Queues, " ")))
	inFlight := draw.Count(r.InFlight)
	if r.Concurrency > 0 && !r.PerKey {
		inFlight += " of " + draw.Count(r.Concurrency)
	}
	line("in flight", inFlight)
	if !r.Rate.IsZero() && !r.PerKey {
		next := "now"
		if r.WaitSeconds > 0 {
			next = "in " + time.Duration(r.WaitSeconds*float64(time.Second)).Round(time.Millisecond).String()
		}
		line("next start", next)
	}
	for _, k := range r.Keys {
		text := fmt.Sprintf("%s: %s in flight, %s waiting", k.Key, draw.Count(k.InFlight), draw.Count(k.Waiting))
		if !k.ClosedUntil.IsZero() {
			text += ", closed until " + k.ClosedUntil.Format(time.RFC3339)
		} else if k.WaitSeconds > 0 {
			text += ", next start in " + time.Duration(k.WaitSeconds*float64(time.Second)).Round(time.Millisecond).String()
		}
		line("key", text)
	}
	line("changed", fmt.Sprintf("%s by %s: %s", r.ChangedAt.Format(time.RFC3339), r.ChangedBy, orDash(oneLine(r.Reason))))
	_, err := a.stdout.Write(text.Bytes())
	return err
}

func (a *app) limitSetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "set LIMIT NAME=VALUE…",
		Short: "Make a limit, or change its rate, burst or concurrency",
		Long: `Makes a limit, or changes it. It counts over all queues whose setting limits names it, from the next
claim on, in every process. A rate holds in every window; 0 or an empty value removes a figure.
With per=key, the figures count for each limit key of jobs apart, such as for each host. With
units=cost, they count the costs of jobs, such as tokens.`,
		Example: "  sluice limits set bank rate=500/5s burst=100 --reason \"the bank's contract\"\n  sluice limits set bank concurrency=200\n  sluice limits set bank concurrency=\n  sluice limits set host per=key concurrency=2 --reason \"be polite\"",
		Args:    arguments(2, 6),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				stored, err := limit.Change(ctx, store, args[0], a.act(""), func(l *limit.Limit) error {
					for _, arg := range args[1:] {
						name, value, found := strings.Cut(arg, "=")
						if !found {
							return usagef("%q is not written as NAME=VALUE, such as concurrency=5", arg)
						}
						if err := l.Set(name, value); err != nil {
							return codedError{err, exitUsage, "write it as rate=500/5s, burst=100, concurrency=20, per=key or units=cost; an empty value removes it"}
						}
					}
					return nil
				})
				if err == nil {
					a.note("limit %s: %s", stored.Name, stored)
				}
				return err
			})
		},
	}
}

func (a *app) limitCloseCommand() *cobra.Command {
	var during time.Duration
	var key string
	command := &cobra.Command{
		Use:     "close LIMIT --reason WHY",
		Short:   "Stop the claims of all queues of a limit or of one limit key, for a while or until it is opened",
		Example: "  sluice limits close bank --for 10m --reason \"bank is down\"\n  sluice limits set host per=key concurrency=2\n  sluice limits close host --key example.com --for 10m --reason \"it answers 429\"",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				if key != "" {
					err := limit.CloseKey(ctx, store, args[0], key, during, a.act(""))
					if err == nil {
						a.note("key %s of limit %s: closed for %s; open it with `sluice limits open %s --key %s`", key, args[0], sluice.FormatDuration(during), args[0], key)
					}
					return limitError(err)
				}
				closed, err := limit.Close(ctx, store, args[0], during, a.act(""))
				if err == nil {
					a.note("limit %s: %s; open it with `sluice limits open %s`", closed.Name, limitState(closed, closed.ChangedAt), closed.Name)
				}
				return limitError(err)
			})
		},
	}
	command.Flags().Var(duration{&during}, "for", "how long, such as 10m (default: until somebody opens it)")
	command.Flags().StringVar(&key, "key", "", "limit key to close, of a limit that is per key; needs --for (default: the whole limit)")
	return command
}

func (a *app) limitOpenCommand() *cobra.Command {
	var key string
	command := &cobra.Command{
		Use:     "open LIMIT",
		Short:   "Open a closed limit, or a closed limit key",
		Example: "  sluice limits open bank --reason \"bank is back\"",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				if key != "" {
					err := limit.OpenKey(ctx, store, args[0], key, a.act(""))
					if err == nil {
						a.note("key %s of limit %s: open", key, args[0])
					}
					return limitError(err)
				}
				opened, err := limit.Open(ctx, store, args[0], a.act(""))
				if err == nil {
					a.note("limit %s: open", opened.Name)
				}
				return limitError(err)
			})
		},
	}
	command.Flags().StringVar(&key, "key", "", "limit key to open (default: the whole limit)")
	return command
}

func (a *app) limitUndoCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "undo LIMIT",
		Short:   "Undo the last change of a limit; `sluice audit --object limit --name LIMIT` lists the changes",
		Example: "  sluice limits set bank rate=5000/s\n  sluice limits undo bank --reason \"a zero too many\"",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				stored, err := limit.Undo(ctx, store, args[0], a.act(""))
				if err == nil {
					a.note("limit %s: %s", stored.Name, stored)
				}
				return limitError(err)
			})
		},
	}
}

func (a *app) limitDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "delete LIMIT",
		Short:   "Delete a limit that no queue names",
		Example: "  sluice limits set trial concurrency=5\n  sluice limits delete trial --reason \"the trial is over\"",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				err := limit.Delete(ctx, store, args[0], a.act(""))
				if errors.Is(err, sluice.ErrNotFound) {
					err = fmt.Errorf("limit %q: %w", args[0], err)
				}
				if errors.Is(err, sluice.ErrNotAllowed) {
					return codedError{err, exitRefused, "take it out of their settings first: sluice settings set QUEUE limits= --reason WHY"}
				}
				if err == nil {
					a.note("deleted limit %s", args[0])
				}
				return limitError(err)
			})
		},
	}
}

// limitError says where the names of limits are.
func limitError(err error) error {
	if errors.Is(err, sluice.ErrNotFound) {
		return codedError{err, exitNotFound, "look at `sluice limits ls`, or make it with `sluice limits set`"}
	}
	return err
}
