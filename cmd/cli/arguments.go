package cli

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/jobline"
	"github.com/sluice-queue/sluice/internal/near"
)

// arguments checks the number of arguments, and shows the usage line if it is wrong. Cobra's own check does not say
// what is missing.
func arguments(least, most int) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		switch {
		case len(args) > most && command.HasAvailableSubCommands():
			return unknownCommand(command, args[0])
		case len(args) > most:
			return usagef("%q is one argument too many; write: %s", args[most], usageLine(command))
		case len(args) < least:
			return usagef("an argument is missing; write: %s", usageLine(command))
		}
		return nil
	}
}

func usageLine(command *cobra.Command) string {
	if !command.HasParent() {
		return command.Use
	}
	return command.Parent().CommandPath() + " " + command.Use
}

// group makes a command that only holds subcommands. Alone the command shows its help; unknown subcommands are errors.
// Cobra would show the help and report success.
func group(command *cobra.Command) *cobra.Command {
	command.Args = cobra.ArbitraryArgs
	command.RunE = func(command *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(command, args[0])
		}
		return command.Help()
	}
	return command
}

// unknownCommand suggests similar commands.
func unknownCommand(parent *cobra.Command, name string) error {
	parent.SuggestionsMinimumDistance = 2
	todo := fmt.Sprintf("see `%s --help`", parent.CommandPath())
	if meant := parent.SuggestionsFor(name); len(meant) > 0 {
		slices.Sort(meant)
		for i := range meant {
			meant[i] = "`" + parent.CommandPath() + " " + meant[i] + "`"
		}
		todo = "did you mean " + strings.Join(meant, " or ") + "? " + todo
	}
	return codedError{usagef("there is no command %q", parent.CommandPath()+" "+name), exitUsage, todo}
}

func parseID(text string) (sluice.ID, error) { return jobline.ParseID(text) }

// helpCommand is cobra's, but refuses unknown commands.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]…",
		Short:   "Show a command's help",
		Example: "  sluice help\n  sluice help dead requeue",
		RunE: func(_ *cobra.Command, args []string) error {
			command := root
			for _, name := range args {
				at := slices.IndexFunc(command.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
				if at < 0 {
					return unknownCommand(command, name)
				}
				command = command.Commands()[at]
			}
			command.InitDefaultHelpFlag()
			return command.Help()
		},
	}
}

// completionCommand is cobra's, adapted to our conventions.
func completionCommand(root *cobra.Command) *cobra.Command {
	root.InitDefaultCompletionCmd()
	at := slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == "completion" })
	command := group(root.Commands()[at])
	command.Use, command.Short = "completion SHELL", "Print a shell completion script"
	command.Example = "  source <(sluice completion bash)\n  sluice completion fish > ~/.config/fish/completions/sluice.fish"
	command.Long = "Prints a script for bash, zsh, fish or powershell. The --help of each says where to put it."
	for _, shell := range command.Commands() {
		shell.Args = arguments(0, 0)
	}
	return command
}

// emptyAllowed is the annotation of flags for which an empty value means something, such as to remove a value.
const emptyAllowed = "sluice_empty_allowed"

// allowEmpty lets these flags be empty.
func allowEmpty(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = flags.SetAnnotation(name, emptyAllowed, nil)
	}
}

// checkNotEmpty refuses flags that are given without a value, mostly from an unset variable of a script. Taken as not
// given, --tenant "" would cancel the jobs of every tenant, and --at "" would pay at once.
func checkNotEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(flag *pflag.Flag) {
		_, allowed := flag.Annotations[emptyAllowed]
		empty := flag.Value.String() == ""
		if list, is := flag.Value.(pflag.SliceValue); is {
			empty = len(list.GetSlice()) == 0 || slices.Contains(list.GetSlice(), "")
		}
		if empty && !allowed && err == nil {
			err = usagef("--%s is empty; give it a value, or leave it out", flag.Name)
		}
	})
	return err
}

// settle checks the common flags before anything is done, and fills in the environment's values. They are no flag
// defaults, because the help would show passwords.
func (a *app) settle(command *cobra.Command) error {
	if err := checkNotEmpty(command.Flags()); err != nil {
		return err
	}
	if err := a.settleProfile(command); err != nil {
		return err
	}
	if migrate := os.Getenv("SLUICE_MIGRATE"); migrate != "" && !command.Flags().Changed("migrate") {
		var err error
		if a.migrate, err = strconv.ParseBool(migrate); err != nil {
			return usagef("SLUICE_MIGRATE=%q is neither true nor false", migrate)
		}
	}
	if a.by == "" {
		a.by = whoAmI()
	}
	if !slices.Contains(outputs, a.output) {
		return usagef("--output %q must be one of %s", a.output, strings.Join(outputs, ", "))
	}
	if err := a.checkAddress(command); err != nil {
		return err
	}
	return a.log.check()
}

// outputs are the output formats.
var outputs = []string{"table", "json", "jsonl", "ids"}

// duration is a flag value that reads and shows durations as settings do, including days.
type duration struct{ into *time.Duration }

// newDuration returns a flag value with a default. Given values must exceed 0.
func newDuration(into *time.Duration, otherwise time.Duration) duration {
	*into = otherwise
	return duration{into}
}

// String shows the duration; empty for 0.
func (d duration) String() string {
	if d.into == nil || *d.into == 0 {
		return ""
	}
	text := d.into.String()
	for _, zero := range []struct{ long, short string }{{"m0s", "m"}, {"h0m", "h"}} {
		if strings.HasSuffix(text, zero.long) {
			text = strings.TrimSuffix(text, zero.long) + zero.short
		}
	}
	return text
}

// Set reads the duration.
func (d duration) Set(text string) error {
	parsed, err := jobline.ParseDuration(text)
	if err == nil && parsed <= 0 {
		err = errors.New("it must be longer than 0")
	}
	if err == nil {
		*d.into = parsed
	}
	return err
}

// Type names the value in the help.
func (duration) Type() string { return "duration" }

// rate is a flag value that reads rates as settings do.
type rate struct{ into *sluice.Rate }

// String shows the rate.
func (r rate) String() string {
	if r.into == nil || r.into.IsZero() {
		return ""
	}
	return r.into.String()
}

// Set reads the rate.
func (r rate) Set(text string) error {
	parsed, err := sluice.ParseRate(text)
	if err != nil || parsed.IsZero() {
		return errors.New("it is not a rate such as 100/s, 500/5s or 20/m")
	}
	*r.into = parsed
	return nil
}

// Type names the value in the help.
func (rate) Type() string { return "rate" }

// parseTime reads a flag's instant. An empty text is the zero time.
func parseTime(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := jobline.ParseInstant(text)
	if err != nil {
		return at, usagef("%s %q: %w", flag, text, err)
	}
	return at, nil
}

func parseLabels(pairs []string) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	labels := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, found := strings.Cut(pair, "=")
		if !found || name == "" {
			return nil, usagef("--label %q is not NAME=VALUE", pair)
		}
		if _, again := labels[name]; again {
			return nil, usagef("--label %s is given twice", name)
		}
		labels[name] = value
	}
	return labels, nil
}

var goNumberError = regexp.MustCompile(`strconv\.\w+: parsing ".*": (invalid syntax|value out of range)$`)

// flagError explains a wrong flag without names of Go functions, and suggests similar flags.
func flagError(command *cobra.Command, err error) error {
	if name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --"); unknown {
		return unknownFlag(command, name)
	}
	text := goNumberError.ReplaceAllStringFunc(err.Error(), func(found string) string {
		if strings.HasSuffix(found, "range") {
			return "it is too large or too small"
		}
		return "it is not a whole number"
	})
	return usageError{errors.New(text)}
}

// unknownFlag suggests similar flags.
func unknownFlag(command *cobra.Command, name string) error {
	var flags []string
	command.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags = append(flags, f.Name)
		}
	})
	todo := fmt.Sprintf("see `%s --help`", command.CommandPath())
	if meant := near.Meant(name, flags, 3); len(meant) > 0 {
		todo = "did you mean --" + strings.Join(meant, " or --") + "? " + todo
	}
	return codedError{usagef("unknown flag: --%s", name), exitUsage, todo}
}
