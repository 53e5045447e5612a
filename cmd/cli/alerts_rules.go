package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
)

func (a *app) alertRulesCommand() *cobra.Command {
	var queue string
	command := &cobra.Command{
		Use:        "rules [RULE]",
		SuggestFor: []string{"get", "show"},
		Short:      "List alert rules, or show one with its runbook",
		Long: `Lists the rules in effect: presets, changed and added ones. A queue's rule replaces the general one
there. Alerts that need statistics keep their state if no process counts. A single rule also shows
its meaning and what to do.`,
		Example: "  sluice alerts rules\n  sluice alerts rules dead-letters\n  sluice alerts rules -o json",
		Args:    arguments(0, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				book, err := alert.Read(ctx, store)
				if err != nil {
					return err
				}
				rules := slices.DeleteFunc(book.Rules, func(r alert.Rule) bool {
					return len(args) > 0 && r.Name != args[0] || queue != "" && r.Queue != "" && r.Queue != queue
				})
				if len(rules) == 0 {
					return unknownRule(fmt.Errorf("rule %.80q: %w", args[0], sluice.ErrNotFound))
				}
				if len(args) > 0 && a.output == "table" {
					return a.showRules(rules)
				}
				return printList(a, rules, func(r alert.Rule) string { return r.Object() }, ruleColumns())
			})
		},
	}
	command.Flags().StringVar(&queue, "queue", "", "leave out rules of other queues")
	return command
}

func ruleColumns() []column[alert.Rule] {
	field := func(name string) func(alert.Rule) string {
		f, err := alert.FieldNamed(name)
		return func(r alert.Rule) string {
			if err != nil {
				return "-"
			}
			return f.Format(r)
		}
	}
	return []column[alert.Rule]{
		{"RULE", func(r alert.Rule) string { return r.Name }, false},
		{"QUEUE", func(r alert.Rule) string { return orDash(r.Queue) }, false},
		{"CONDITION", func(r alert.Rule) string { return r.Metric + " " + r.Op + " " + field("threshold")(r) }, false},
		{"FOR", field("for"), true},
		{"SEVERITY", field("severity"), false},
		{"COVERS", func(r alert.Rule) string {
			if r.Queue != "" {
				return "the queue"
			}
			return r.Covers.Describe()
		}, false},
		{"NEEDS", func(r alert.Rule) string { return orDash(ruleNeeds(r)) }, false},
		{"", func(r alert.Rule) string {
			switch {
			case r.Disabled:
				return "disabled"
			case r.Version > 0:
				return "changed"
			}
			return ""
		}, false},
		{"SUMMARY", field("summary"), false},
	}
}

// ruleNeeds names a rule's requirement: some metrics come from the statistics.
func ruleNeeds(r alert.Rule) string {
	if metric, err := alert.MetricNamed(r.Metric); err == nil && metric.NeedsStatistics() {
		return "statistics"
	}
	return ""
}

func (a *app) showRules(rules []alert.Rule) error {
	for i, r := range rules {
		text := ""
		if i > 0 {
			text = "\n"
		}
		text += r.Object() + ": " + r.Summary + "\n"
		for _, f := range alert.Fields() {
			if value := f.Format(r); value != "" && f.Name != "summary" && f.Name != "runbook" {
				text += fmt.Sprintf("  %-11s%s\n", f.Name, value)
			}
		}
		if metric, err := alert.MetricNamed(r.Metric); err == nil {
			text += "  " + r.Metric + ", in " + metric.Unit + ": " + metric.Meaning + "\n"
		}
		if needs := ruleNeeds(r); needs != "" {
			text += "  needs " + needs + ": where no process counts, its alert stays as it is\n"
		}
		text += "what to do:\n  " + strings.ReplaceAll(orDash(r.Runbook), "\n", "\n  ") + "\n"
		if r.Version > 0 {
			text += fmt.Sprintf("changed %s by %s: %s\n", ago(r.ChangedAt), r.ChangedBy, orDash(r.Reason))
		}
		if _, err := fmt.Fprint(a.stdout, text); err != nil {
			return err
		}
	}
	return nil
}

func unknownRule(err error) error {
	if errors.Is(err, sluice.ErrNotFound) {
		return codedError{err, exitNotFound, "look at `sluice alerts rules`"}
	}
	return err
}

func alertFieldsHelp() string {
	var text strings.Builder
	text.WriteString("Fields:\n")
	for _, f := range alert.Fields() {
		fmt.Fprintf(&text, "  %-11s %s\n", f.Name, f.Meaning)
	}
	return text.String()
}

func (a *app) alertSetCommand() *cobra.Command {
	var queue string
	command := &cobra.Command{
		Use:   "set RULE NAME=VALUE…",
		Short: "Change or add an alert rule, for all queues or one",
		Long: `Changes a rule from the next evaluation on. With --queue it replaces the general rule there,
whatever that covers. A new name adds a rule, which needs a metric: see docs/alerts.md.

` + alertFieldsHelp(),
		Example: "  sluice alerts set dead-letters threshold=100 for=10m --reason \"we read them daily\"\n  sluice alerts set slow-runs threshold=300 --queue reports --reason \"reports take long\"\n  sluice alerts set many-scheduled metric=ready threshold=500 severity=note summary=\"more than usual\"",
		Args:    arguments(2, math.MaxInt),
		RunE: func(command *cobra.Command, args []string) error {
			return a.changeRule(command.Context(), args[0], queue, func(r *alert.Rule) error {
				if err := applyFields(r, args[1:]); err != nil || r.Metric != "" {
					return err
				}
				return codedError{
					usagef("no rule is named %.80q, and a rule of your own needs metric=METRIC", args[0]), exitUsage,
					"`sluice alerts rules` lists the rules, docs/alerts.md the metrics",
				}
			})
		},
	}
	command.Flags().StringVar(&queue, "queue", "", "only this queue")
	return command
}

// applyFields reads name=value pairs into a rule. The value @FILE is read from the file.
func applyFields(rule *alert.Rule, pairs []string) error {
	for _, pair := range pairs {
		name, value, found := strings.Cut(pair, "=")
		if !found {
			return usagef("%q is not NAME=VALUE", pair)
		}
		field, err := alert.FieldNamed(name)
		if err != nil {
			return usagef("%w", err)
		}
		if path, isFile := strings.CutPrefix(value, "@"); isFile {
			text, err := os.ReadFile(path)
			if err != nil {
				return usagef("%s: %w", name, err)
			}
			value = strings.TrimSpace(string(text))
		}
		if err := field.Parse(rule, value); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) changeRule(ctx context.Context, name, queue string, change func(*alert.Rule) error) error {
	return a.withClient(ctx, func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
		before, after, err := alert.SetRule(ctx, store, name, queue, a.act(""), change)
		if err != nil {
			return err
		}
		changed := false
		for _, f := range alert.Fields() {
			if old, now := f.Format(before), f.Format(after); old != now {
				changed = true
				if _, err := fmt.Fprintf(a.stdout, "%s.%s  %s → %s\n", after.Object(), f.Name, orDash(oneLine(old)), orDash(oneLine(now))); err != nil {
					return err
				}
			}
		}
		if !changed {
			a.note("nothing changed: the rule was so before")
		}
		return nil
	})
}

func (a *app) alertSwitchCommand(verb string, disabled bool) *cobra.Command {
	var queue string
	short := "Enable an alert rule"
	if disabled {
		short = "Disable an alert rule; its firing alerts end"
	}
	command := &cobra.Command{
		Use:     verb + " RULE",
		Short:   short,
		Example: "  sluice alerts " + verb + " slow-runs\n  sluice alerts " + verb + " unserved --queue reports --reason \"a cron starts its worker\"",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.changeRule(command.Context(), args[0], queue, func(r *alert.Rule) error {
				if r.Metric == "" {
					return unknownRule(fmt.Errorf("rule %.80q: %w", args[0], sluice.ErrNotFound))
				}
				r.Disabled = disabled
				return nil
			})
		},
	}
	command.Flags().StringVar(&queue, "queue", "", "only this queue")
	return command
}

func (a *app) alertResetCommand() *cobra.Command {
	var queue string
	command := &cobra.Command{
		Use:     "reset RULE",
		Short:   "Reset an alert rule: restore a preset, delete any other",
		Example: "  sluice alerts reset dead-letters\n  sluice alerts reset dead-letters --queue mail --reason \"as everywhere\"",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				err := alert.ResetRule(ctx, store, args[0], queue, a.act(""))
				if errors.Is(err, sluice.ErrNotFound) {
					return codedError{err, exitNotFound, "nothing was said of it there; look at `sluice alerts rules`"}
				}
				if err == nil {
					a.note("%s is as it was", alert.RuleName(args[0], queue))
				}
				return err
			})
		},
	}
	command.Flags().StringVar(&queue, "queue", "", "only this queue")
	return command
}
