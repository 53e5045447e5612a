package cli

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/schema"
)

func (a *app) schedulesCommand() *cobra.Command {
	command := group(&cobra.Command{
		Use:   "schedules",
		Short: "Control schedules: jobs that upkeep enqueues again and again",
		Example: "  sluice schedules set nightly --queue reports --cron \"30 2 * * *\" --zone Europe/Berlin\n" +
			"  sluice schedules ls\n  sluice schedules show nightly\n  sluice schedules pause nightly --reason \"bank is closed\"",
	})
	command.AddCommand(a.schedulesListCommand(), a.scheduleShowCommand(), a.scheduleSetCommand(),
		a.scheduleActCommand("pause", "Stop a schedule's fires until it is resumed; --reason shows on it",
			func(ctx context.Context, store sluice.Store, name string, act sluice.Act) (schedule.Schedule, error) {
				return schedule.Pause(ctx, store, name, act.Reason, act)
			}),
		a.scheduleActCommand("resume", "Resume a paused schedule with its next fire", schedule.Resume),
		a.scheduleActCommand("lift", "End an override: give a schedule the definition that a program declares", schedule.Lift),
		a.scheduleActCommand("undo", "Undo the last change of a schedule", schedule.Undo),
		a.scheduleTriggerCommand(), a.scheduleBackfillCommand(), a.scheduleDeleteCommand())
	return command
}

func (a *app) schedulesListCommand() *cobra.Command {
	var filter schedule.Filter
	command := &cobra.Command{
		Use:     "ls",
		Short:   "List schedules by name",
		Example: "  sluice schedules ls\n  sluice schedules ls --queue reports -o json",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, client *sluice.Client) error {
				found, err := schedule.List(ctx, store, filter)
				if err != nil {
					return err
				}
				if len(found) == 0 && filter.Queue != "" && a.output == "table" {
					return a.noteNothing(ctx, client, "no schedules", filter.Queue)
				}
				if len(found) == 0 && a.output == "table" {
					a.note("no schedules; `sluice schedules set NAME --queue QUEUE --cron \"@daily\"` makes one")
					return nil
				}
				return printList(a, found, func(s schedule.Schedule) string { return s.Name }, scheduleColumns())
			})
		},
	}
	command.Flags().StringVar(&filter.Queue, "queue", "", "only schedules of this queue")
	command.Flags().StringVar(&filter.After, "after", "", "continue after this name")
	command.Flags().IntVar(&filter.Limit, "limit", 100, "most schedules")
	return command
}

func scheduleColumns() []column[schedule.Schedule] {
	figure := func(title string, of func(schedule.Progress) int) column[schedule.Schedule] {
		return column[schedule.Schedule]{title, func(s schedule.Schedule) string { return draw.Count(of(s.Progress)) }, true}
	}
	return []column[schedule.Schedule]{
		{"SCHEDULE", func(s schedule.Schedule) string { return s.Name }, false},
		{"QUEUE", func(s schedule.Schedule) string { return s.Queue }, false},
		{"WHEN", scheduleWhen, false},
		{"NEXT", func(s schedule.Schedule) string { return scheduleState(s, time.RFC3339) }, false},
		figure("FIRED", func(p schedule.Progress) int { return p.Fired }),
		figure("SKIPPED", func(p schedule.Progress) int { return p.Skipped }),
		figure("MISSED", func(p schedule.Progress) int { return p.Missed }),
		figure("REFUSED", func(p schedule.Progress) int { return p.Refused }),
		{"SET BY", func(s schedule.Schedule) string { return scheduleOwner(s) }, false},
	}
}

// scheduleWhen says when a schedule fires.
func scheduleWhen(s schedule.Schedule) string {
	switch {
	case s.Cron != "" && s.Zone != "":
		return s.Cron + " " + s.Zone
	case s.Cron != "":
		return s.Cron
	case s.Every != 0:
		return "every " + sluice.FormatDuration(s.Every)
	}
	return draw.Plural(len(s.At), "instant")
}

// scheduleState says when a schedule fires next, or why it does not.
func scheduleState(s schedule.Schedule, layout string) string {
	switch {
	case s.Paused && s.Note != "":
		return "paused: " + oneLine(s.Note)
	case s.Paused:
		return "paused"
	case s.NextAt.IsZero():
		return "ended"
	}
	return s.NextAt.Format(layout)
}

// scheduleOwner says who decides about a definition.
func scheduleOwner(s schedule.Schedule) string {
	switch {
	case s.Overridden():
		return "operator, overriding a program"
	case s.Declared != nil:
		return "program"
	}
	return "operator"
}

// scheduleDetail is a schedule with its next and last fires.
type scheduleDetail struct {
	Schedule schedule.Schedule `json:"schedule"`
	Next     []time.Time       `json:"next"`
	Results  []schedule.Fire   `json:"results"`
}

func (a *app) scheduleShowCommand() *cobra.Command {
	var next, last int
	command := &cobra.Command{
		Use:        "show NAME",
		SuggestFor: []string{"get"},
		Short:      "Show a schedule with its next and last fires",
		Example:    "  sluice schedules show nightly\n  sluice schedules show nightly --next 10 --last 20",
		Args:       arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				s, err := schedule.Read(ctx, store, args[0])
				if err != nil {
					return err
				}
				detail := scheduleDetail{Schedule: s}
				recent := s.Progress.Recent
				s.Progress.Recent = recent[max(0, len(recent)-max(0, last)):]
				if detail.Results, err = schedule.Results(ctx, store, s); err != nil {
					return err
				}
				if detail.Next, err = s.Next(s.Now, min(next, 1000)); err != nil {
					return err
				}
				return a.printNamed(detail, s.Name, func() error { return a.printSchedule(detail) })
			})
		},
	}
	command.Flags().IntVar(&next, "next", 5, "how many of the next fires to show")
	command.Flags().IntVar(&last, "last", 5, fmt.Sprintf("how many of the last fires to show, with the states of their jobs; at most %d are kept", schedule.RecentFires))
	return command
}

func (a *app) printSchedule(d scheduleDetail) error {
	s := d.Schedule
	var text bytes.Buffer
	line, instant := detailLines(&text, time.RFC3339)
	line("schedule", s.Name)
	line("queue", s.Queue)
	line("when", scheduleWhen(s))
	instant("start", s.Start)
	instant("end", s.End)
	if s.Paused || s.NextAt.IsZero() {
		line("state", scheduleState(s, time.RFC3339))
	} else {
		line("state", "active")
	}
	line("set by", scheduleOwner(s))
	if s.Overridden() {
		line("", "A deploy does not change it. `sluice schedules lift "+s.Name+"` gives it what the program declares:")
		line("declared", scheduleWhen(schedule.Schedule{Definition: *s.Declared})+", queue "+s.Declared.Queue)
	}
	line("payload", compact(s.Payload))
	line("key", s.Key)
	line("tenant", s.Tenant)
	if s.Priority != 0 {
		line("priority", fmt.Sprint(s.Priority))
	}
	line("labels", formatLabels(s.Labels))
	line("overlap", string(s.Overlap))
	line("catch-up", string(s.CatchUp)+", of the last "+sluice.FormatDuration(s.CatchUpWindow))
	if s.Jitter > 0 {
		line("jitter", sluice.FormatDuration(s.Jitter))
	}
	if s.PauseAfter > 0 {
		line("pauses after", fmt.Sprintf("%d failed fires in a row  (now %d)", s.PauseAfter, s.Progress.Failures))
	}
	line("fires", scheduleFires(s))
	line("changed", fmt.Sprintf("%s by %s: %s", s.ChangedAt.Format(time.RFC3339), s.ChangedBy, orDash(oneLine(s.Reason))))
	for _, at := range d.Next {
		line("next", localText(at, s.Zone))
	}
	for _, f := range d.Results {
		line("last", scheduleResult(f, s.Zone))
	}
	_, err := a.stdout.Write(text.Bytes())
	return err
}

func scheduleFires(s schedule.Schedule) string {
	fired := jobs(s.Progress.Fired)
	if s.MaxFires > 0 {
		fired = draw.Count(s.Progress.Fired) + " of " + jobs(s.MaxFires)
	}
	p := s.Progress
	return fmt.Sprintf("%s  (skipped %s, missed %s, refused %s)", fired, draw.Count(p.Skipped), draw.Count(p.Missed), draw.Count(p.Refused))
}

// localText writes an instant by the clock of the schedule's zone.
func localText(at time.Time, zone string) string {
	location, err := time.LoadLocation(zone)
	if err != nil {
		location = time.UTC
	}
	return at.In(location).Format(time.RFC3339)
}

func scheduleResult(f schedule.Fire, zone string) string {
	text := localText(f.At, zone) + " " + string(f.Result)
	if !f.Job.IsZero() {
		text += " " + f.Job.String()
	}
	if f.State != "" {
		text += " " + string(f.State)
	}
	if f.Reason != "" {
		text += ": " + oneLine(f.Reason)
	}
	return text
}

// scheduleActCommand makes a command that changes a schedule.
func (a *app) scheduleActCommand(name, says string, do func(context.Context, sluice.Store, string, sluice.Act) (schedule.Schedule, error)) *cobra.Command {
	return &cobra.Command{
		Use:     name + " NAME",
		Short:   says,
		Example: fmt.Sprintf("  sluice schedules %s nightly --reason \"bank is closed\"", name),
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				s, err := do(ctx, store, args[0], a.act(""))
				if err != nil {
					return err
				}
				return a.sayNext(ctx, store, s)
			})
		},
	}
}

// sayNext prints when a changed schedule fires next.
func (a *app) sayNext(ctx context.Context, store sluice.Store, s schedule.Schedule) error {
	if !s.Paused && !s.NextAt.IsZero() {
		a.warnOfNoUpkeep(ctx, store)
	}
	return a.printNamed(s, s.Name, func() error {
		state := scheduleState(s, time.RFC3339)
		if !s.Paused && !s.NextAt.IsZero() {
			state = "fires next at " + localText(s.NextAt, s.Zone)
		}
		_, err := fmt.Fprintf(a.stdout, "schedule %s: %s\n", s.Name, state)
		return err
	})
}

func (a *app) scheduleTriggerCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "trigger NAME",
		Short:   "Fire a schedule now, even if it is paused; its next fire stays",
		Example: "  sluice schedules trigger nightly --reason \"last night's report is wrong\"",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				fire, err := schedule.Trigger(ctx, store, args[0], a.act(""), schema.New())
				if err != nil {
					return err
				}
				return a.printNamed(fire, fire.Job.String(), func() error {
					text := fire.Job.String()
					if fire.Result == schedule.Duplicate {
						text += "  (duplicate: this job has the key)"
					}
					_, err := fmt.Fprintln(a.stdout, text)
					return err
				})
			})
		},
	}
}

func (a *app) scheduleDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a schedule; its jobs stay",
		Example: "  sluice schedules delete nightly --reason \"no more reports\"",
		Args:    arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				s, err := schedule.Read(ctx, store, args[0])
				if err != nil {
					return err
				}
				if err := schedule.Delete(ctx, store, args[0], a.act("")); err != nil {
					return err
				}
				a.note("deleted schedule %s", args[0])
				if s.Declared != nil {
					a.note("a program declares it, and makes it again at its next start; pause it instead to stop it")
				}
				return nil
			})
		},
	}
}
