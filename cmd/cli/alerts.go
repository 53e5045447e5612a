package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/stat"
)

func (a *app) alertsCommand() *cobra.Command {
	command := group(&cobra.Command{
		Use:   "alerts",
		Short: "List alerts; change, test and silence their rules",
		Long: `A rule names a metric, a threshold, and how long the metric must be past it. The leading upkeep
evaluates rules every 15 s, stores alerts, and notifies log, audit and its webhooks.`,
		Example: "  sluice alerts ls\n  sluice alerts rules dead-letters\n  sluice alerts set dead-letters threshold=100 --queue mail --reason \"we read them weekly\"\n  sluice alerts silence unserved --queue mail --for 2h --reason \"the workers move\"",
	})
	command.AddCommand(a.alertsListCommand(), a.alertRulesCommand(), a.alertSetCommand(), a.alertSwitchCommand("enable", false), a.alertSwitchCommand("disable", true),
		a.alertResetCommand(), a.alertTestCommand(), a.silenceCommand(), a.unsilenceCommand(), a.silencesCommand(), a.alertHistoryCommand())
	return command
}

// alertRow is an alert with the metric, operator and message of its rule.
type alertRow struct {
	alert.Alert
	Metric  string `json:"metric"`
	Op      string `json:"op"`
	Message string `json:"message"`
	// Unknown reports that upkeep has evaluated since At without a value: the alert keeps its state.
	Unknown bool `json:"unknown,omitempty"`
}

func (a *app) alertsListCommand() *cobra.Command {
	var all bool
	var queue string
	command := &cobra.Command{
		Use:   "ls",
		Short: "List pending, firing and silenced alerts",
		Long: `Lists active alerts of upkeep's last evaluation. A pending alert fires once its condition has held
as long as its rule says; a silenced one would fire. If its value is unknown, an alert keeps its
state and says so.`,
		Example: "  sluice alerts ls\n  sluice alerts ls --all --queue payments\n  sluice alerts ls -o json",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				book, err := alert.Read(ctx, store)
				if err != nil {
					return err
				}
				rows := alertRows(book, all, queue)
				a.noteBook(book, len(rows))
				if len(rows) == 0 && a.output == "table" {
					return nil
				}
				return printList(a, rows, func(r alertRow) string { return r.Name() }, alertColumns())
			})
		},
	}
	command.Flags().BoolVar(&all, "all", false, "also alerts that are over")
	command.Flags().StringVar(&queue, "queue", "", "only this queue")
	return command
}

func alertRows(book alert.Book, all bool, queue string) []alertRow {
	var rows []alertRow
	looked := lastLook(book)
	for _, one := range book.Alerts {
		if queue != "" && one.Queue != queue || !all && one.State == alert.Inactive {
			continue
		}
		row := alertRow{Alert: one, Unknown: one.State != alert.Inactive && looked.Sub(one.At) > time.Minute}
		for _, r := range book.Rules {
			if r.Name == one.Rule && (r.Queue == "" && row.Metric == "" || r.Queue == one.Queue) {
				row.Metric, row.Op, row.Message = r.Metric, r.Op, r.Summary
			}
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(x, y alertRow) int { return slices.Index(alertOrder, x.State) - slices.Index(alertOrder, y.State) })
	return rows
}

// alertOrder is the order of display.
var alertOrder = []alert.State{alert.Firing, alert.Pending, alert.Silenced, alert.Inactive}

func alertColumns() []column[alertRow] {
	return []column[alertRow]{
		{"STATE", func(r alertRow) string { return string(r.State) }, false},
		{"SEVERITY", func(r alertRow) string { return string(r.Severity) }, false},
		{"RULE", func(r alertRow) string { return r.Rule }, false},
		{"QUEUE", func(r alertRow) string { return orDash(r.Queue) }, false},
		{"VALUE", func(r alertRow) string {
			if r.Unknown {
				return "not known; " + ago(r.At) + " " + metricText(r.Value)
			}
			return metricText(r.Value)
		}, true},
		{"THRESHOLD", func(r alertRow) string { return r.Op + " " + metricText(r.Threshold) }, true},
		{"SINCE", func(r alertRow) string { return ago(r.Since) }, true},
		{"MESSAGE", func(r alertRow) string { return orDash(r.Message) }, false},
	}
}

// metricText formats a value briefly.
func metricText(value float64) string {
	if value >= 1000 && value < 1e15 {
		return draw.Count(int(value))
	}
	return strconv.FormatFloat(value, 'g', 4, 64)
}

// lastLook returns the last evaluation of alerts; zero: none.
func lastLook(book alert.Book) (looked time.Time) {
	for _, one := range book.Alerts {
		if one.At.After(looked) {
			looked = one.At
		}
	}
	return looked
}

// noteBook notes problems that a list of alerts does not show: no recent evaluation, and unreached receivers.
func (a *app) noteBook(book alert.Book, rows int) {
	looked := lastLook(book)
	switch {
	case looked.IsZero():
		a.note("nobody has looked at alerts yet; `sluice upkeep` does")
	case book.Now.Sub(looked) > time.Minute:
		a.note("nobody has looked at alerts since %s, %s; run `sluice upkeep`", looked.Format(time.RFC3339), ago(looked))
	case rows == 0:
		a.note("no alert; the last look was %s", ago(looked))
	}
	for _, r := range book.Receivers {
		if r.Waiting > 0 {
			a.note("%s was not told of %d: the first is from %s: %s", r.Name, r.Waiting, ago(r.Oldest), orDash(sluice.Brief(r.Error)))
		}
	}
}

func (a *app) alertTestCommand() *cobra.Command {
	var queue string
	var hooks webhookFlags
	command := &cobra.Command{
		Use:   "test [RULE]",
		Short: "Evaluate rules without storing, or send a webhook a test message",
		Long: `Reads the metrics of all rules, or one, and shows which break their threshold; exit code 7 if one
does. Nothing is stored, nobody notified. --alert-webhook instead sends that address a test
message, as upkeep would.`,
		Example: "  sluice alerts test\n  sluice alerts test dead-letters --queue payments\n  sluice alerts test --alert-webhook https://hooks.example.com/sluice",
		Args:    arguments(0, 1),
		RunE: func(command *cobra.Command, args []string) error {
			receivers, err := hooks.receivers()
			if err != nil {
				return err
			}
			if len(receivers) > 0 {
				return a.tryReceivers(command.Context(), receivers)
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				found, err := alert.New(store, alert.Options{Logger: a.logger()}).Read(ctx)
				if err != nil {
					return err
				}
				return a.printLook(found, args, queue)
			})
		},
	}
	command.Flags().StringVar(&queue, "queue", "", "only this queue")
	hooks.addTo(command.Flags())
	return command
}

// tryReceivers sends each receiver a test message.
func (a *app) tryReceivers(ctx context.Context, receivers []alert.Receiver) error {
	var failed []error
	for _, r := range receivers {
		if err := alert.Test(ctx, r, a.by); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", r.Name(), err))
			continue
		}
		a.note("%s took a test message", r.Name())
	}
	return errors.Join(failed...)
}

func (a *app) printLook(found []alert.Finding, args []string, queue string) error {
	rows := []wire.EvaluationView{}
	broken := 0
	for _, f := range found {
		if len(args) > 0 && args[0] != f.Rule.Name || queue != "" && queue != f.Queue.Name {
			continue
		}
		row := wire.EvaluationViewOf(f)
		if row.Breaks {
			broken++
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return fmt.Errorf("no rule of that name is looked at there: %w", sluice.ErrNotFound)
	}
	if err := printList(a, rows, func(r wire.EvaluationView) string { return alert.RuleName(r.Rule, r.Queue) }, lookColumns()); err != nil {
		return err
	}
	if broken > 0 {
		return silentExit(exitCheckFailed)
	}
	return nil
}

func lookColumns() []column[wire.EvaluationView] {
	return []column[wire.EvaluationView]{
		{"", func(r wire.EvaluationView) string {
			switch {
			case r.Breaks:
				return "✖"
			case r.Value == nil:
				return "·"
			}
			return "✔"
		}, false},
		{"RULE", func(r wire.EvaluationView) string { return r.Rule }, false},
		{"QUEUE", func(r wire.EvaluationView) string { return orDash(r.Queue) }, false},
		{"METRIC", func(r wire.EvaluationView) string { return r.Metric }, false},
		{"VALUE", func(r wire.EvaluationView) string {
			switch {
			case r.Value == nil && strings.HasPrefix(r.Detail, stat.NotCounted):
				return stat.NotCounted
			case r.Value == nil:
				return "unknown"
			}
			return metricText(*r.Value)
		}, true},
		{"THRESHOLD", func(r wire.EvaluationView) string { return r.Op + " " + metricText(r.Threshold) }, true},
		{"SEVERITY", func(r wire.EvaluationView) string { return string(r.Severity) }, false},
		{"DETAIL", func(r wire.EvaluationView) string { return orDash(sluice.Brief(r.Error + r.Detail)) }, false},
	}
}
