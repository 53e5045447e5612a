package cli

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/schedule"
)

// scheduleFlags are the options of `schedules set`.
type scheduleFlags struct {
	definition       schedule.Definition
	at, labels       []string
	start, end       string
	payload          string
	overlap, catchUp string
}

func (a *app) scheduleSetCommand() *cobra.Command {
	var f scheduleFlags
	command := &cobra.Command{
		Use:   "set NAME",
		Short: "Make or change a schedule",
		Long: `Makes a schedule, or changes what the flags name. One of --cron, --every and --at says when it fires.

In the payload, the key and the values of labels, {{fire}} becomes the fire's instant and {{date}} its
date in the zone. Every job has the label schedule=NAME.

If a program declares the schedule, the change overrides the program until ` + "`sluice schedules lift`" + `.`,
		Example: `  sluice schedules set nightly --queue reports --cron "30 2 * * *" --zone Europe/Berlin --payload '{"day":"{{date}}"}'
  sluice schedules set poll --queue feeds --every 10m --jitter 2m --overlap "cancel other"
  sluice schedules set nightly --pause-after 3`,
		Args: arguments(1, 1),
		RunE: func(command *cobra.Command, args []string) error {
			if command.Flags().NFlag() == 0 {
				return usagef("say what to set, such as --queue and --cron")
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				stored, err := schedule.Read(ctx, store, args[0])
				if err != nil && !errors.Is(err, sluice.ErrNotFound) {
					return err
				}
				s, err := schedule.Change(ctx, store, args[0], a.act(""), func(d *schedule.Definition) (err error) {
					if *d, err = f.change(*d, command.Flags()); err == nil && d.Queue == "" {
						err = usagef("it is new: say the queue of its jobs with --queue")
					}
					return err
				})
				if err != nil {
					return err
				}
				if s.Overridden() && !stored.Overridden() {
					a.note("this overrides what a program declares, until `sluice schedules lift %s`", s.Name)
				}
				return a.sayNext(ctx, store, s)
			})
		},
	}
	f.addTo(command.Flags())
	return command
}

func (f *scheduleFlags) addTo(flags *pflag.FlagSet) {
	d := &f.definition
	flags.StringVar(&d.Queue, "queue", "", "queue of the jobs (required for a new schedule)")
	flags.StringVar(&d.Cron, "cron", "", "cron expression of 5 fields, or 6 with the second first; @daily, @hourly, @weekly, @every 10m")
	flags.Var(duration{&d.Every}, "every", "interval between fires, such as 10m")
	flags.StringArrayVar(&f.at, "at", nil, "instant of a fire, such as 2026-12-01T16:00:00Z; repeatable")
	flags.StringVar(&d.Zone, "zone", "", "time zone of --cron by its IANA name, such as Europe/Berlin (default: UTC)")
	flags.StringVar(&f.start, "start", "", "no fire before, such as 2026-12-01T00:00:00Z (default: no bound)")
	flags.StringVar(&f.end, "end", "", "no fire after (default: no bound)")
	flags.IntVar(&d.MaxFires, "max-fires", 0, "end after this many jobs; 0: no end")
	flags.StringVar(&f.payload, "payload", "", "payload of the jobs, as JSON (default: {\"fire\":\"{{fire}}\"})")
	flags.StringVar(&d.Key, "key", "", "idempotency key of the jobs")
	flags.StringVar(&d.Tenant, "tenant", "", "tenant of the jobs")
	flags.IntVar(&d.Priority, "priority", 0, "from 1 (first) to 10 (last) (default 5)")
	flags.StringArrayVar(&f.labels, "label", nil, "label of the jobs, as NAME=VALUE; repeatable")
	flags.StringVar(&f.overlap, "overlap", "", "if an earlier job is unfinished: skip, queue one, queue all, cancel other (default: skip)")
	flags.StringVar(&f.catchUp, "catch-up", "", "missed fires to make up for: last, all, none (default: last)")
	flags.Var(duration{&d.CatchUpWindow}, "catch-up-window", "how old a missed fire may be (default: 24h)")
	flags.Var(duration{&d.Jitter}, "jitter", "delay each job by up to this much")
	allowEmpty(flags, "zone", "start", "end", "payload", "key", "tenant", "overlap", "catch-up") // back to the default
	flags.IntVar(&d.PauseAfter, "pause-after", 0, "pause when this many fires in a row have failed: their jobs died, or the queue refused them; 0: never")
}

// change returns a definition with what the flags say.
func (f *scheduleFlags) change(d schedule.Definition, flags *pflag.FlagSet) (schedule.Definition, error) {
	if flags.Changed("cron") || flags.Changed("every") || flags.Changed("at") {
		d.Cron, d.Every, d.At = "", 0, nil
	}
	given := f.definition
	for name, set := range map[string]func(){
		"queue": func() { d.Queue = given.Queue }, "cron": func() { d.Cron = given.Cron }, "every": func() { d.Every = given.Every },
		"zone": func() { d.Zone = given.Zone }, "max-fires": func() { d.MaxFires = given.MaxFires },
		"payload": func() { d.Payload = json.RawMessage(f.payload) }, "key": func() { d.Key = given.Key },
		"tenant": func() { d.Tenant = given.Tenant }, "priority": func() { d.Priority = given.Priority },
		"overlap": func() { d.Overlap = schedule.Overlap(f.overlap) }, "catch-up": func() { d.CatchUp = schedule.CatchUp(f.catchUp) },
		"catch-up-window": func() { d.CatchUpWindow = given.CatchUpWindow }, "jitter": func() { d.Jitter = given.Jitter },
		"pause-after": func() { d.PauseAfter = given.PauseAfter },
	} {
		if flags.Changed(name) {
			set()
		}
	}
	return f.changeParsed(d, flags)
}

// changeParsed sets what the flags say in a form of their own.
func (f *scheduleFlags) changeParsed(d schedule.Definition, flags *pflag.FlagSet) (schedule.Definition, error) {
	for _, text := range f.at {
		at, err := parseTime("--at", text)
		if err != nil {
			return d, err
		}
		d.At = append(d.At, at)
	}
	for _, at := range []struct {
		flag, text string
		into       *time.Time
	}{{"start", f.start, &d.Start}, {"end", f.end, &d.End}} {
		if !flags.Changed(at.flag) {
			continue
		}
		var err error
		if *at.into, err = parseTime("--"+at.flag, at.text); err != nil {
			return d, err
		}
	}
	if !flags.Changed("label") {
		return d, nil
	}
	var err error
	d.Labels, err = parseLabels(f.labels)
	return d, err
}
