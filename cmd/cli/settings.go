package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/cmd/internal/acting"
	"github.com/sluice-queue/sluice/internal/near"
)

func (a *app) settingsCommand() *cobra.Command {
	command := group(&cobra.Command{
		Use:     "settings",
		Short:   "Show, change, schedule and undo settings of queues",
		Long:    "Every process applies a change within a second. The history keeps who made it and why.\nChanges can be undone, temporary (--revert-in), or for hours of the day (schedule).\n\n" + settingsHelp(),
		Example: "  sluice settings get payments\n  sluice settings set payments lease=2m --reason \"slow bank\"\n  sluice settings undo payments\n  sluice settings schedule payments rate=200/s --from 16:00 --to 18:00 --tz Europe/Berlin",
	})
	command.AddCommand(a.settingsGetCommand(), a.settingsSetCommand(), a.settingsHistoryCommand(), a.settingsGroupsCommand(), a.settingsUndoCommand(),
		a.settingsScheduleCommand(), a.settingsScheduledCommand(), a.settingsUnscheduleCommand())
	return command
}

func settingsHelp() string {
	var text strings.Builder
	text.WriteString("Settings:\n")
	for _, s := range sluice.AllSettings() {
		fmt.Fprintf(&text, "  %-20s %s Default %s.\n", s.Name, s.Meaning, orDash(s.Format(sluice.DefaultSettings())))
	}
	return text.String()
}

// settingRow is one setting of a queue.
type settingRow struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Default string `json:"default"`
	Meaning string `json:"meaning"`
}

func (a *app) settingsGetCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "get QUEUE [SETTING]",
		Short:   "Show a queue's settings, or one of them",
		Example: "  sluice settings get payments\n  sluice settings get payments lease",
		Args:    arguments(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				queue, err := client.Queue(ctx, args[0])
				if err != nil {
					return err
				}
				above, err := acting.GroupOf(ctx, client, queue.Name)
				if err != nil {
					return err
				}
				if len(args) == 2 {
					setting, err := settingNamed(args[1])
					if err != nil {
						return err
					}
					return a.printOne(rowOf(setting, queue, above), func() error {
						_, err := fmt.Fprintln(a.stdout, setting.Format(queue.Settings))
						return err
					})
				}
				return a.printSettings(queue, above)
			})
		},
	}
}

// rowOf returns a setting of a queue. The default is that of the queue's group.
func rowOf(s sluice.Setting, queue, above sluice.Queue) settingRow {
	return settingRow{s.Name, s.Format(queue.Settings), s.Format(above.Settings), s.Meaning}
}

func (a *app) printSettings(queue, above sluice.Queue) error {
	var rows []settingRow
	for _, s := range sluice.AllSettings() {
		rows = append(rows, rowOf(s, queue, above))
	}
	if err := printList(a, rows, func(r settingRow) string { return r.Name + "=" + r.Value }, []column[settingRow]{
		{"SETTING", func(r settingRow) string { return r.Name }, false},
		{"VALUE", func(r settingRow) string { return orDash(r.Value) }, true},
		{"DEFAULT", func(r settingRow) string { return orDash(r.Default) }, true},
		{"MEANING", func(r settingRow) string { return r.Meaning }, false},
	}); err != nil {
		return err
	}
	if above.Name != "" {
		a.noteExceptions(queue, above)
	}
	a.note("version %d, changed %s by %s: %s", queue.Version, ago(queue.ChangedAt), queue.ChangedBy, orDash(queue.Reason))
	a.noteScheduled(queue)
	return nil
}

func (a *app) settingsSetCommand() *cobra.Command {
	var revertIn time.Duration
	var yes *bool
	command := &cobra.Command{
		Use:   "set QUEUE SETTING=VALUE…",
		Short: "Change settings of a queue or group, creating it if missing",
		Long: "Shows what changed. A group, such as 'mail.*', gives its settings to new queues such as mail.welcome.\nWhen it changes, its queues follow, but for settings in which they differ from it.\n With --revert-in, upkeep restores the former values after that time;\n" +
			"values changed since stay, and the audit says so.\n" +
			"Raising the rate to twice what the queue's engine took in the last day asks first,\n" +
			"and needs --yes if nobody can be asked.",
		Example: "  sluice settings set payments lease=2m max_attempts=5 --reason \"slow bank\"\n  sluice settings set payments rate=20/s --revert-in 30m --reason \"the bank's maintenance\"\n  sluice settings set payments payload_schema=@payment.schema.json\n  sluice settings set 'mail.*' max_attempts=5 --reason \"all mail\"",
		Args:    arguments(2, math.MaxInt),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, client *sluice.Client) error {
				if err := a.guardRate(ctx, store, client, args[0], args[1:], *yes); err != nil {
					return err
				}
				before, after, err := a.changeSettings(ctx, client, args[0], args[1:], revertIn)
				if err != nil {
					return err
				}
				if err := a.printChanges(before, after); err != nil {
					return err
				}
				return a.noteUnknownLimits(ctx, store, after.Settings)
			})
		},
	}
	yes = addYes(command)
	command.Flags().Var(duration{&revertIn}, "revert-in", "restore the former values after this time, such as 30m")
	return command
}

// changeSettings changes a queue, or creates it with the settings. A refused change creates nothing.
func (a *app) changeSettings(ctx context.Context, client *sluice.Client, name string, pairs []string, revertIn time.Duration) (before, after sluice.Queue, err error) {
	change := func(s *sluice.Settings) error {
		before.Settings = *s
		return applySettings(s, pairs)
	}
	if revertIn > 0 {
		before, err = client.Queue(ctx, name)
		if err == nil {
			after, err = changes.For(ctx, client, name, revertIn, a.act(""), change)
		}
		return before, after, err
	}
	after, err = client.ChangeSettings(ctx, name, a.act(""), change)
	var usage usageError
	if !errors.Is(err, sluice.ErrNotFound) || errors.As(err, &usage) {
		return before, after, err
	}
	above, err := acting.GroupOf(ctx, client, name)
	if err != nil {
		return before, after, err
	}
	before.Settings = above.Settings
	settings := before.Settings
	if err := settings.Change(func(s *sluice.Settings) error { return applySettings(s, pairs) }); err != nil {
		return before, after, err
	}
	after, err = client.EnsureQueue(ctx, name, settings, a.act(""))
	return before, after, err
}

// printChanges prints a change, setting by setting.
func (a *app) printChanges(before, after sluice.Queue) error {
	lines := changesBetween(before.Settings, after.Settings)
	if before.Version > 0 {
		planned, err := scheduledBetween(before, after)
		if err != nil {
			return err
		}
		lines = append(lines, planned...)
	}
	if len(lines) == 0 {
		a.note("nothing changed: the settings were so before")
	}
	for _, change := range lines {
		if _, err := fmt.Fprintln(a.stdout, after.Name+"."+strings.TrimSpace(strings.Map(printable, change))); err != nil {
			return err
		}
	}
	return nil
}

func changesBetween(before, after sluice.Settings) []string {
	lines := []string{}
	for _, s := range sluice.AllSettings() {
		if old, now := s.Format(before), s.Format(after); old != now {
			lines = append(lines, fmt.Sprintf("%s  %s → %s", s.Name, orDash(old), orDash(now)))
		}
	}
	return lines
}

// applySettings reads name=value pairs into settings. The value @FILE is read from the file.
func applySettings(settings *sluice.Settings, pairs []string) error {
	for _, pair := range pairs {
		name, value, err := cutSetting(pair)
		if err != nil {
			return err
		}
		setting, err := settingNamed(name)
		if err != nil {
			return err
		}
		if err := setting.Parse(settings, value); err != nil {
			return err
		}
	}
	return nil
}

// settingNamed finds a setting by name.
func settingNamed(name string) (sluice.Setting, error) {
	setting, err := near.Setting(name)
	if err != nil {
		return setting, codedError{usagef("%w", err), exitUsage, "see `sluice settings --help`, which lists all settings"}
	}
	return setting, nil
}

// cutSetting reads a pair name=value. The value @FILE is read from the file.
func cutSetting(pair string) (name, value string, err error) {
	name, value, found := strings.Cut(pair, "=")
	if !found {
		return "", "", usagef("%q is not SETTING=VALUE", pair)
	}
	if _, err := settingNamed(name); err != nil {
		return "", "", err
	}
	if path, isFile := strings.CutPrefix(value, "@"); isFile {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", "", usagef("%s: %w", name, err)
		}
		value = strings.TrimSpace(string(text))
	}
	return name, value, nil
}

// historyRow is one change of a queue's settings.
type historyRow struct {
	Seq     int64     `json:"seq"`
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	Reason  string    `json:"reason,omitempty"`
	Changes []string  `json:"changes"`
}

func (a *app) settingsHistoryCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "history QUEUE",
		Short:   "Show who changed what and why, newest first",
		Example: "  sluice settings history payments",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				entries, err := client.Audit(ctx, sluice.AuditFilter{Object: audit.ObjectQueue, Name: args[0], Event: audit.EventChange, Limit: 1000})
				if err != nil {
					return err
				}
				if len(entries) == 0 {
					return fmt.Errorf("queue %.80q: %w", args[0], sluice.ErrNotFound)
				}
				var rows []historyRow
				for _, e := range entries {
					changes, err := settingChanges(e)
					if err != nil {
						return err
					}
					rows = append(rows, historyRow{e.Seq, e.At, e.Actor, e.Reason, changes})
				}
				return printList(a, rows, func(r historyRow) string { return r.At.Format(time.RFC3339Nano) }, []column[historyRow]{
					{"SEQ", func(r historyRow) string { return fmt.Sprint(r.Seq) }, true},
					{"WHEN", func(r historyRow) string { return r.At.Format(time.RFC3339) }, false},
					{"BY", func(r historyRow) string { return r.By }, false},
					{"CHANGE", func(r historyRow) string { return orDash(strings.Join(r.Changes, ", ")) }, false},
					{"REASON", func(r historyRow) string { return orDash(r.Reason) }, false},
				})
			})
		},
	}
}

// settingChanges lists what an audit entry of a queue changed.
func settingChanges(e sluice.AuditEntry) ([]string, error) {
	if len(e.Before) == 0 {
		return []string{"created"}, nil
	}
	before, after := sluice.DefaultSettings(), sluice.DefaultSettings()
	if err := json.Unmarshal(e.Before, &before); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(e.After, &after); err != nil {
		return nil, err
	}
	scheduledBefore, err := changes.InAudit(e.Before)
	if err != nil {
		return nil, err
	}
	scheduledAfter, err := changes.InAudit(e.After)
	if err != nil {
		return nil, err
	}
	return append(changesBetween(before, after), scheduledChanges(scheduledBefore, scheduledAfter)...), nil
}

func (a *app) settingsUndoCommand() *cobra.Command {
	var to int64
	command := &cobra.Command{
		Use:   "undo QUEUE",
		Short: "Undo the last change of settings, whoever made it, or all changes after one",
		Long: `Gives the queue the settings that it had before the last change. With --to, the settings become as the
change with that number left them: "sluice settings history" shows the numbers.`,
		Example: "  sluice settings undo payments --reason \"too slow\"\n  sluice settings undo payments --to 1",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, _ sluice.Store, client *sluice.Client) error {
				before, err := client.Queue(ctx, args[0])
				if err != nil {
					return err
				}
				undo := changes.Undo
				if command.Flags().Changed("to") {
					undo = func(ctx context.Context, client *sluice.Client, queue string, act sluice.Act) (sluice.Queue, error) {
						return changes.UndoTo(ctx, client, queue, to, act)
					}
				}
				after, err := undo(ctx, client, args[0], a.act("undo"))
				if err != nil {
					return err
				}
				return a.printChanges(before, after)
			})
		},
	}
	command.Flags().Int64Var(&to, "to", 0, "the number of the change to go back to")
	return command
}
