package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
)

func (a *app) auditVerifyCommand() *cobra.Command {
	var heads []string
	command := &cobra.Command{
		Use:   "verify",
		Short: "Prove that no audit entry was changed, removed or inserted",
		Long: `Reads the chain of seals and every entry that it covers, and names the first entry changed, removed
or inserted after sealing. The exit code is then 7.

A truncated or wholly rewritten chain looks intact. Only heads kept outside the store reveal that:
from the log, a webhook or "sluice audit head". Pass them with --head.

Through a server, it compares here what the server tells of seals and entries.`,
		Example: "  sluice audit verify\n  sluice audit verify --head 1042-5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			var options audit.VerifyOptions
			for _, text := range heads {
				head, err := audit.ParseHead(text)
				if err != nil {
					return err
				}
				options.Heads = append(options.Heads, head)
			}
			return a.withChain(command.Context(), func(ctx context.Context, store sluice.Store, chain audit.Store) error {
				p := a.newProgress("verified", 0)
				options.Progress = func(r audit.Report) { p.say("verified " + entries(r.Entries)) }
				report, err := audit.Verify(ctx, chain, options)
				if err != nil {
					return err
				}
				if err := a.printOne(report, func() error { return a.printVerified(ctx, store, report) }); err != nil {
					return err
				}
				if report.Fault != nil || len(report.TooOld) > 0 {
					return silentExit(exitCheckFailed)
				}
				return nil
			})
		},
	}
	command.Flags().StringArrayVar(&heads, "head", nil, "a head kept outside the store; repeatable")
	return command
}

// withChain opens the store and its audit chain. --timeout limits each call only, because reading a long audit takes
// longer.
func (a *app) withChain(ctx context.Context, do func(context.Context, sluice.Store, audit.Store) error) error {
	store, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer a.close(store)
	chain, err := audit.Of(store)
	if err != nil {
		return err
	}
	return do(ctx, store, chain)
}

func (a *app) printVerified(ctx context.Context, store sluice.Store, r audit.Report) error {
	var text strings.Builder
	if f := r.Fault; f != nil {
		fmt.Fprintf(&text, "✖ %s\n", f.Summary)
		if !f.SealedAt.IsZero() {
			fmt.Fprintf(&text, "  seal %d, made at %s\n", f.Seal, f.SealedAt.Format(time.RFC3339))
		}
		if f.Kind == audit.Changed || f.Kind == audit.Inserted {
			fmt.Fprintf(&text, "  as it is now: %s\n", a.entryLine(ctx, store, f.Seq))
		}
		if f.Kind == audit.Broken || f.Kind == audit.Cut {
			fmt.Fprintf(&text, "  the chain vouches for the entries before %d\n", f.Seq)
		}
		fmt.Fprintf(&text, "  %s\n", sealed(r, " before it"))
	} else {
		fmt.Fprintf(&text, "✔ %s\n", sealed(r, ""))
	}
	if r.Last.No > 0 && r.Fault == nil {
		fmt.Fprintf(&text, "  head: %s, made at %s\n", r.Last.Head(), r.Last.At.Format(time.RFC3339))
	}
	for _, level := range audit.Levels() {
		if n := r.Gone[level]; n > 0 {
			fmt.Fprintf(&text, "  deleted by retention: %s of the level %s, which is kept for %s\n", entries(n), level, kept(r.Last.Keeps(level)))
		}
	}
	for _, h := range r.Heads {
		fmt.Fprintf(&text, "  in the chain: %s\n", h)
	}
	for _, h := range r.TooOld {
		fmt.Fprintf(&text, "✖ cannot be looked for: %s, as retention has left nothing of its time\n", h)
	}
	if r.Unsealed > 0 {
		fmt.Fprintf(&text, "  not sealed yet: %s, the oldest of %s; `sluice upkeep` seals each minute\n", entries(r.Unsealed), r.OldestUnsealed.Format(time.RFC3339))
	}
	_, err := fmt.Fprint(a.stdout, text.String())
	return err
}

// entryLine formats an entry on one line.
func (a *app) entryLine(ctx context.Context, store sluice.Store, seq int64) string {
	entries, err := store.Audit(ctx, sluice.AuditFilter{Before: seq + 1, Limit: 1})
	if err != nil || len(entries) == 0 || entries[0].Seq != seq {
		return "not to be read"
	}
	var parts []string
	for _, c := range auditColumns() {
		parts = append(parts, oneLine(c.text(entries[0])))
	}
	return strings.Join(parts, "  ")
}

func (a *app) auditHeadCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "head",
		Short: "Show the head of the audit chain, to keep outside the store",
		Long: `Shows the number and hash of the last seal. Keep them out of reach of the store's writers. "sluice
audit verify" then detects a truncated or rewritten audit.`,
		Example: "  sluice audit head",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withChain(command.Context(), func(ctx context.Context, _ sluice.Store, chain audit.Store) error {
				last, err := chain.LastAuditSeal(ctx)
				if err != nil {
					return err
				}
				if last.No == 0 {
					return codedError{fmt.Errorf("nothing was sealed yet: %w", sluice.ErrNotFound), exitNotFound, "run `sluice upkeep`, which seals the audit"}
				}
				return a.printOne(last, func() error {
					_, err := fmt.Fprintln(a.stdout, last.Head())
					return err
				})
			})
		},
	}
}

func (a *app) auditKeepCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "keep [LEVEL=DURATION…]",
		Short: "Show or set how long audit entries are kept",
		Long: `Entries are notable (acts of people, settings, unusual moves) or full (written only if a queue's
setting audit is full). Upkeep deletes older ones hourly; "sluice audit verify" can still check the
rest. 0s keeps them for ever. The audit and the chain record the change.`,
		Example: "  sluice audit keep\n  sluice audit keep full=90d --reason \"as the contract says\"\n  sluice audit keep notable=0s full=7d --reason \"the disk is small\"",
		RunE: func(command *cobra.Command, args []string) error {
			keep, err := parseKeep(args)
			if err != nil {
				return err
			}
			return a.withChain(command.Context(), func(ctx context.Context, _ sluice.Store, chain audit.Store) error {
				last, err := chain.LastAuditSeal(ctx)
				if err == nil && len(keep) > 0 {
					last, err = audit.Keep(ctx, chain, keep, a.act(""))
				}
				if err != nil {
					return err
				}
				return printList(a, []keptLevel{{audit.Notable, last.Keeps(audit.Notable)}, {audit.Full, last.Keeps(audit.Full)}},
					func(k keptLevel) string { return string(k.Level) }, keepColumns())
			})
		},
	}
}

// keptLevel is the retention of a level.
type keptLevel struct {
	Level audit.Level   `json:"level"`
	Keep  time.Duration `json:"keep"`
}

func keepColumns() []column[keptLevel] {
	return []column[keptLevel]{
		{"LEVEL", func(k keptLevel) string { return string(k.Level) }, false},
		{"KEPT", func(k keptLevel) string { return kept(k.Keep) }, false},
	}
}

func kept(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == 0:
		return "for ever"
	case d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	}
	return d.String()
}

// leastKeep stops a typing error from deleting everything.
const leastKeep = time.Hour

func parseKeep(args []string) (map[audit.Level]time.Duration, error) {
	keep := make(map[audit.Level]time.Duration)
	for _, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		level := audit.Level(name)
		if !found || level != audit.Notable && level != audit.Full {
			return nil, usagef("%q is neither notable=DURATION nor full=DURATION", arg)
		}
		d, err := sluice.ParseDuration(value)
		if err != nil || d != 0 && (d < leastKeep || d > audit.MaxKeep) {
			return nil, usagef("%s: %q is neither 0s (for ever) nor a duration from 1h to 3650d", name, value)
		}
		keep[level] = d
	}
	return keep, nil
}

// entries formats a number of entries.
func entries(n int64) string { return draw.Plural(int(n), "entry") }

// sealed says how many entries are unchanged.
func sealed(r audit.Report, where string) string {
	are := "are as they were"
	if r.Entries == 1 {
		are = "is as it was"
	}
	return entries(r.Entries) + where + " " + are + " sealed, in " + draw.Plural(int(r.Seals), "seal")
}
