package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitRefused     = 4
	exitUnreachable = 5
	exitPartly      = 6
	exitCheckFailed = 7
	exitTimeout     = 124
	exitInterrupted = 130
)

// usageError is a command line that cannot be understood.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// codedError has an exit code of its own.
type codedError struct {
	error
	code int
	todo string
}

func (e codedError) Unwrap() error { return e.error }

// silentExit ends the command with a code after it has said everything itself.
type silentExit int

func (silentExit) Error() string { return "" }

func asExit(err error) (code int, silent bool) {
	var exit silentExit
	if errors.As(err, &exit) {
		return int(exit), true
	}
	return 0, false
}

// explain tells a person on three lines what failed, why, and what to do, and gives the exit code.
func (a *app) explain(command *cobra.Command, err error) int {
	code, todo := diagnose(command, err)
	what := command.CommandPath()
	why, _, _ := strings.Cut(redact(err.Error()), "\n")
	fmt.Fprintf(a.stderr, "error: %s failed\n  why: %s\n  do:  %s\n", what, why, todo)
	return code
}

func diagnose(command *cobra.Command, err error) (code int, todo string) {
	help := fmt.Sprintf("see «%s --help»", command.CommandPath())
	var coded codedError
	var usage usageError
	switch {
	case errors.As(err, &coded):
		return coded.code, coded.todo
	case errors.As(err, &usage), isCobraUsage(err):
		return exitUsage, help
	case errors.Is(err, context.Canceled):
		return exitInterrupted, "run it again; what was done is done"
	case errors.Is(err, sluice.ErrNotMigrated):
		return exitFailed, "run «sluice migrate», or add --migrate"
	case errors.Is(err, sluice.ErrNewerSchema):
		return exitRefused, "install the newer sluice that migrated this database"
	case errors.Is(err, worker.ErrDrainTimeout):
		return exitTimeout, "the jobs were released and will run again; give the drain more time with --grace"
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout, "narrow what you ask for, or give it more time with --timeout"
	case errors.Is(err, sluice.ErrUnavailable):
		return exitUnreachable, "check --db (or SLUICE_DB) and that the database is up: «sluice doctor»"
	case errors.Is(err, sluice.ErrNotFound):
		return exitNotFound, "look at what there is: «sluice queues», «sluice jobs»"
	case errors.Is(err, sluice.ErrNotAllowed):
		return exitRefused, "look at the job's state: «sluice job ID»"
	case errors.Is(err, sluice.ErrDuplicate):
		return exitRefused, "wait for the job that holds the key, or cancel it"
	case errors.Is(err, sluice.ErrConflict):
		return exitRefused, "look at the settings again and repeat the change"
	case errors.Is(err, sluice.ErrInvalid):
		return exitUsage, "correct it; " + help
	}
	return exitFailed, help
}

// isCobraUsage recognises the errors that cobra makes of a bad command line.
func isCobraUsage(err error) bool {
	text := err.Error()
	for _, prefix := range []string{"unknown command", "unknown flag", "unknown shorthand", "accepts ", "requires at least", "required flag", "invalid argument", "flag needs an argument", "if any flags in the group"} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

var passwordInURL = regexp.MustCompile(`(postgres(?:ql)?://[^:@/\s]*):[^@/\s]*@`)

// redact takes passwords out of a text that may show a store's address.
func redact(text string) string { return passwordInURL.ReplaceAllString(text, "$1:•••@") }

// redactURL gives a store's address without its password.
func redactURL(address string) string {
	at, err := url.Parse(address)
	if err != nil || at.User == nil {
		return redact(address)
	}
	at.User = url.User(at.User.Username())
	query := at.Query()
	if query.Has("password") {
		query.Set("password", "•••")
		at.RawQuery = query.Encode()
	}
	return at.String()
}
