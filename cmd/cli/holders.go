package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/presence"
)

func (a *app) holdersCommand() *cobra.Command {
	var jobs bool
	command := &cobra.Command{
		Use:   "holders",
		Short: "List running processes, what they do and their problems; quiesce, stop or drain them",
		Long: `Lists workers, dispatchers, forwarders and upkeep by their last heartbeat. MODE is working, quiesced
(told to claim nothing) or stopping. VERSION is that of the program; PROTO is the protocol of its
library. Silent processes are listed for an hour. With --jobs it lists the jobs that they run.`,
		Example: "  sluice holders\n  sluice holders --jobs\n  sluice holders drain --version 1.4.0 --wait 10m --reason \"deploy 1.5.0\"\n  sluice holders -o json",
		Args:    arguments(0, 0),
		RunE: func(command *cobra.Command, _ []string) error {
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				if jobs {
					return a.printHeld(ctx, store)
				}
				holders, err := presence.Holders(ctx, store)
				if err != nil {
					return err
				}
				if len(holders) == 0 && a.output == "table" {
					a.note("nobody works; `sluice work QUEUE -- COMMAND` does")
					return nil
				}
				if err := printList(a, holders, func(h presence.Holder) string { return h.ID }, holderColumns()); err != nil || a.output != "table" {
					return err
				}
				return a.printConditions(holders)
			})
		},
	}
	command.Flags().BoolVar(&jobs, "jobs", false, "list the jobs that they run, the longest claimed first")
	for _, verb := range []instructVerb{
		{"quiesce", presence.WantedQuiesce, "Let processes claim nothing new and finish what they run"},
		{"resume", presence.WantedWork, "Let quiesced processes work again"},
		{"stop", presence.WantedStop, "Let processes drain and end, as an interrupt does"},
	} {
		command.AddCommand(a.instructCommand(verb))
	}
	command.AddCommand(a.drainCommand())
	return command
}

func holderColumns() []column[presence.Holder] {
	return []column[presence.Holder]{
		{"HOLDER", func(h presence.Holder) string { return h.ID }, false},
		{"ROLE", func(h presence.Holder) string { return h.Role }, false},
		{"VERSION", func(h presence.Holder) string { return orDash(h.Version) }, false},
		{"PROTO", func(h presence.Holder) string { return protocolOf(h) }, true},
		{"MODE", func(h presence.Holder) string { return orDash(string(h.Mode)) }, false},
		{"QUEUES", func(h presence.Holder) string { return orDash(strings.Join(h.Queues, ",")) }, false},
		{"BUSY", func(h presence.Holder) string { return fmt.Sprintf("%d/%d", h.Busy, h.Slots) }, true},
		{"TROUBLE", func(h presence.Holder) string { return orDash(troubleKinds(h)) }, false},
		{"LEADS", func(h presence.Holder) string { return orDash(strings.Join(h.Leads, ", ")) }, false},
		{"STARTED", func(h presence.Holder) string { return ago(h.Started) }, true},
		{"SEEN", func(h presence.Holder) string { return ago(h.Seen) }, true},
	}
}

func protocolOf(h presence.Holder) string {
	if h.Protocol == 0 {
		return "-"
	}
	return fmt.Sprint(h.Protocol)
}

// troubleKinds names the conditions of a process in words.
func troubleKinds(h presence.Holder) string {
	var kinds []string
	for _, c := range h.Conditions {
		if kind := strings.ReplaceAll(string(c.Kind), "_", " "); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, ", ")
}

// printConditions prints, below the table, what each process was told, its conditions, and how to end both.
func (a *app) printConditions(holders []presence.Holder) error {
	for _, h := range holders {
		if i := h.Instruction; i != nil && i.Quiesces() {
			if _, err := fmt.Fprintf(a.stdout, "! %s: %s\n  do: %s\n", oneLine(h.ID), oneLine(i.String()), oneLine(i.Lift())); err != nil {
				return err
			}
		}
		for _, c := range h.Conditions {
			text := fmt.Sprintf("✖ %s: %s\n", oneLine(h.ID), oneLine(c.String()))
			if c.Repair != "" {
				text += "  do: " + oneLine(c.Repair) + "\n"
			}
			if _, err := fmt.Fprint(a.stdout, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// printHeld lists the claimed jobs of all listed processes.
func (a *app) printHeld(ctx context.Context, store sluice.Store) error {
	left, err := presence.Remains(ctx, store, presence.Target{All: true})
	if err != nil {
		return err
	}
	if len(left.Jobs) == 0 && a.output == "table" {
		a.note("no listed process runs a job")
		return nil
	}
	return printList(a, left.Jobs, func(j presence.HeldJob) string { return j.ID.String() }, []column[presence.HeldJob]{
		{"JOB", func(j presence.HeldJob) string { return j.ID.String() }, false},
		{"QUEUE", func(j presence.HeldJob) string { return j.Queue }, false},
		{"HOLDER", func(j presence.HeldJob) string { return j.Holder }, false},
		{"CLAIMED", func(j presence.HeldJob) string { return ago(j.ClaimedAt) }, true},
		{"LEASE", func(j presence.HeldJob) string { return ago(j.LeaseUntil) }, true},
	})
}

// addVersionTo adds the flag by which a user names the version of a process.
func (a *app) addVersionTo(flags *pflag.FlagSet) {
	flags.StringVar(&a.version, "version", os.Getenv("SLUICE_VERSION"), "version of your program, shown by holders (default: $SLUICE_VERSION, or that of sluice)")
}

// targetFlags choose processes.
type targetFlags struct {
	version string
	all     bool
	during  time.Duration
}

func (f *targetFlags) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.version, "version", "", "all processes of this version, also those that start later")
	flags.BoolVar(&f.all, "all", false, "all processes, also those that start later")
	flags.Var(newDuration(&f.during, 0), "for", "lift it after this long (default: until it is resumed)")
}

func (f *targetFlags) target(args []string) (presence.Target, error) {
	target := presence.Target{Version: f.version, All: f.all}
	if len(args) > 0 {
		target.Holder = args[0]
	}
	given := 0
	for _, is := range []bool{target.Holder != "", target.Version != "", target.All} {
		if is {
			given++
		}
	}
	if given != 1 {
		return target, usagef("name one HOLDER, or --version VERSION, or --all; `sluice holders` lists them")
	}
	return target, nil
}

type instructVerb struct {
	name   string
	wanted presence.Wanted
	short  string
}

func (a *app) instructCommand(verb instructVerb) *cobra.Command {
	var which targetFlags
	command := &cobra.Command{
		Use:   verb.name + " [HOLDER]",
		Short: verb.short,
		Long: `Each process learns it with its next heartbeat, at most 10 s later. The newest instruction that
chooses a process counts. One to a version or to all also holds for processes that start later,
until "sluice holders resume" lifts it, or --for ends. A stopped program exits with code 0.`,
		Example: fmt.Sprintf("  sluice holders %s --version 1.4.0 --reason \"deploy 1.5.0\"", verb.name),
		Args:    arguments(0, 1),
		RunE: func(command *cobra.Command, args []string) error {
			target, err := which.target(args)
			if err != nil {
				return err
			}
			return a.withClient(command.Context(), func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
				told, err := a.instruct(ctx, store, target, verb.wanted, which.during)
				if err != nil {
					return err
				}
				left, err := presence.Remains(ctx, store, target)
				if err != nil {
					return err
				}
				return a.printOne(told, func() error {
					_, err := fmt.Fprintf(a.stdout, "%s: within 10 s, %s will be told to %s\n", target, draw.Plural(len(left.Holders), "process"), verb.wanted)
					return err
				})
			})
		},
	}
	which.addTo(command.Flags())
	return command
}

func (a *app) instruct(ctx context.Context, store sluice.Store, target presence.Target, wanted presence.Wanted, during time.Duration) (presence.Instruction, error) {
	if a.reason == "" {
		return presence.Instruction{}, usagef("say why with --reason: the log of each process and the audit have it")
	}
	return presence.Instruct(ctx, store, target, wanted, during, a.act(""))
}

// drainPause is the time between two looks of a drain.
const drainPause = 500 * time.Millisecond

func (a *app) drainCommand() *cobra.Command {
	var which targetFlags
	var wait time.Duration
	var stop bool
	command := &cobra.Command{
		Use:   "drain [HOLDER]",
		Short: "Quiesce processes, and wait until they run no job",
		Long: `For deploys: start the new version, then drain the old one. Waits until each chosen process says
that it claims nothing, and none of their jobs is claimed. Jobs of a process that died count until
upkeep takes them back. Progress goes to standard error.

The processes stay quiesced, also those that start later: end them, or resume them. With --stop
they end by themselves. Exit codes: 0 nothing runs, 3 no such process runs (nothing was changed),
124 --wait passed; the instruction stays.`,
		Example: "  sluice holders drain --version 1.4.0 --wait 10m --reason \"deploy 1.5.0\"",
		Args:    arguments(0, 1),
		RunE: func(command *cobra.Command, args []string) error {
			target, err := which.target(args)
			if err != nil {
				return err
			}
			wanted := presence.WantedQuiesce
			if stop {
				wanted = presence.WantedStop
			}
			store, err := a.open(command.Context())
			if err != nil {
				return err
			}
			defer a.close(store)
			return a.drain(command.Context(), store, drainOf{target: target, wanted: wanted, during: which.during, wait: wait})
		},
	}
	which.addTo(command.Flags())
	command.Flags().Var(newDuration(&wait, 10*time.Minute), "wait", "most time to wait")
	command.Flags().BoolVar(&stop, "stop", false, "let the processes end, too")
	return command
}

// drainOf is one drain.
type drainOf struct {
	target presence.Target
	wanted presence.Wanted
	during time.Duration
	wait   time.Duration
}

// drained is the output of a drain.
type drained struct {
	Target    presence.Target `json:"target"`
	Processes int             `json:"processes"`
	Took      time.Duration   `json:"took"`
}

func (a *app) drain(ctx context.Context, store sluice.Store, d drainOf) error {
	begun := time.Now()
	left, err := a.remains(ctx, store, d.target)
	if err != nil {
		return err
	}
	if len(left.Holders) == 0 && len(left.Jobs) == 0 {
		return codedError{fmt.Errorf("no process of %s runs", d.target), exitNotFound, "see `sluice holders`"}
	}
	most := len(left.Holders)
	told, err := a.instruct(ctx, store, d.target, d.wanted, d.during)
	if err != nil {
		return err
	}
	said, late, err := a.awaitQuiet(ctx, begun.Add(d.wait), d.target.String()+": ", func() (string, error) {
		left, err := a.remains(ctx, store, d.target)
		if err != nil {
			return "", err
		}
		if most = max(most, len(left.Holders)); d.ended(left) {
			return "", nil
		}
		return remainsText(left), nil
	})
	switch {
	case err != nil:
		return err
	case late:
		return codedError{fmt.Errorf("%s: after %s, %s", d.target, d.wait, said), exitTimeout, "run it again to wait longer, or end the processes: their jobs go back when they drain. To lift it: " + told.Lift()}
	}
	return a.printOne(drained{d.target, most, time.Since(begun)}, func() error {
		_, err := fmt.Fprintf(a.stdout, "%s: nothing runs; %s, %s\nlift: %s\n", d.target, draw.Plural(most, "process"), time.Since(begun).Round(time.Second), told.Lift())
		return err
	})
}

// awaitQuiet looks until nothing is left, and tells of each change, after of. Late says that the time was over first; left is then
// what the last look saw.
func (a *app) awaitQuiet(ctx context.Context, until time.Time, of string, look func() (left string, err error)) (left string, late bool, err error) {
	left = "what runs is not known"
	for {
		now, err := look()
		switch {
		case err != nil:
			a.note("not looked at: %v", err) // the store may come back in time
		case now == "":
			return "", false, nil
		case now != left:
			left = now
			a.note("%s%s", of, now)
		}
		if !time.Now().Before(until) {
			return left, true, nil
		}
		select {
		case <-ctx.Done():
			return left, false, ctx.Err()
		case <-time.After(min(drainPause, max(time.Until(until), time.Millisecond))):
		}
	}
}

// ended reports whether there is nothing to wait for.
func (d drainOf) ended(left presence.Remaining) bool {
	return left.Quiet() && (d.wanted != presence.WantedStop || len(left.Holders) == 0)
}

// remains reads within --timeout what is left to wait for.
func (a *app) remains(ctx context.Context, store sluice.Store, target presence.Target) (presence.Remaining, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	return presence.Remains(ctx, store, target)
}

func remainsText(left presence.Remaining) string {
	text := draw.Plural(len(left.Holders), "process") + ", "
	if len(left.Jobs) >= presence.MaxHeldJobs {
		text += "at least "
	}
	text += jobs(len(left.Jobs))
	if len(left.Claiming) > 0 {
		text += "; not quiesced yet: " + strings.Join(left.Claiming[:min(len(left.Claiming), 3)], ", ")
		if more := len(left.Claiming) - 3; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	return text
}

// toldToEnd reports whether a program ended well because somebody stopped it.
func toldToEnd(err error) bool {
	var stopped *presence.StoppedError
	return errors.As(err, &stopped) && err == error(stopped) //nolint:errorlint // joined with another error, it ended badly
}
