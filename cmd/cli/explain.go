package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/move"
	"github.com/sluice-queue/sluice/store/remote"
	"github.com/sluice-queue/sluice/worker"
)

// Exit codes.
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

// exitCode is a code with its name and meaning.
type exitCode struct {
	code          int
	name, meaning string
}

// exitCodes lists all codes, for the help and the docs.
func exitCodes() []exitCode {
	return []exitCode{
		{exitOK, "ok", "Done."},
		{exitFailed, "failed", "Failed for a reason without its own code; the error says which."},
		{exitUsage, "usage", "The command line, a payload or a setting is invalid. Nothing was changed."},
		{exitNotFound, "not found", "No such job, queue, tenant, tier, operation or process."},
		{exitRefused, "refused", "The job's state or the store's role forbids it, it exists already, or the database is newer than the program."},
		{exitUnreachable, "store unreachable", "The store cannot be reached, opened, read or written, or is not migrated; for probe, the server cannot be reached."},
		{exitPartly, "partly done", "Some jobs or lines were refused (see standard error), the others are done. An operation was stopped, or had jobs refused. `work --until-empty` found the queues empty, but jobs died or are held."},
		{exitCheckFailed, "a check failed", "Doctor found a problem, the audit was tampered with, a server is not ready, the demo's proof failed, or a simulation differs from its scenario."},
		{exitTimeout, "timed out", "--timeout passed, a drain took longer than --grace, or `holders drain` or `pause` took longer than --wait."},
		{exitInterrupted, "interrupted", "An interrupt ended the command early, or a second one ended a drain. An operation goes on."},
	}
}

// exitCodesLine lists the codes with their names.
func exitCodesLine() string {
	var parts []string
	for _, c := range exitCodes() {
		parts = append(parts, fmt.Sprintf("%d %s", c.code, c.name))
	}
	return strings.Join(parts, ", ")
}

// usageError is an invalid command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// codedError has its own exit code and advice.
type codedError struct {
	error
	code int
	todo string
}

func (e codedError) Unwrap() error { return e.error }

// silentExit sets the exit code of a command that has printed everything itself.
type silentExit int

func (silentExit) Error() string { return "" }

func asExit(err error) (code int, silent bool) {
	var exit silentExit
	if errors.As(err, &exit) {
		return int(exit), true
	}
	return 0, false
}

// explain prints what failed, why, and what to do, on 3 lines. The result is the exit code.
func (a *app) explain(command *cobra.Command, err error) int {
	code, todo := diagnose(command, err)
	what := command.CommandPath()
	why := strings.TrimSuffix(a.why(err), "; "+todo)
	if code == exitInterrupted {
		why = "it was interrupted"
	}
	fmt.Fprintf(a.stderr, "error: %s failed\n  why: %s\n  do:  %s\n", what, why, todo)
	return code
}

// maxWhy limits the shown part of an error; some carry a schema or a statement.
const maxWhy = 600

// why formats an error on one line, without repeated lines and passwords.
func (a *app) why(err error) string {
	text := err.Error()
	if a.db != "" {
		text = strings.ReplaceAll(text, a.db, redactURL(a.db))
	}
	var lines []string
	for line := range strings.Lines(redact(text)) {
		if line = oneLine(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return cut(strings.Join(lines, " "), maxWhy)
}

func diagnose(command *cobra.Command, err error) (code int, todo string) {
	help := fmt.Sprintf("see `%s --help`", command.CommandPath())
	var coded codedError
	var usage usageError
	var server *pgconn.PgError
	var config *pgconn.ParseConfigError
	var output *fs.PathError
	code, todo = diagnoseServer(err)
	switch {
	case errors.As(err, &coded):
		return coded.code, coded.todo
	case errors.As(err, &usage), isCobraUsage(err):
		return exitUsage, help
	case errors.As(err, &config):
		return exitUsage, "write --db (or SLUICE_DB) as postgres://USER:PASSWORD@HOST:PORT/DATABASE; %40 stands for @ in a password, %2F for /"
	case errors.As(err, &server) && (strings.HasPrefix(server.Code, "28") || server.Code == "3D000"): // wrong user or database
		return exitUnreachable, "check the user, the password and the database in --db (or SLUICE_DB)"
	case errors.As(err, &server) && server.Code == "53300": // too many connections
		return exitUnreachable, "end what holds connections (select application_name, count(*) from pg_stat_activity group by 1), give each process fewer with pool_max_conns=N in --db (or SLUICE_DB), or allow more: alter role ROLE connection limit N; or alter system set max_connections = N, and a restart"
	case todo != "":
		return code, todo
	case errors.As(err, &output) && output.Op == "write" && output.Path == os.Stdout.Name():
		return exitFailed, "the command did its work, but could not write its output; make room where the output goes, and look what is done before you run it again"
	case errors.Is(err, context.Canceled):
		return exitInterrupted, "run it again; what was done is done"
	case errors.Is(err, sluice.ErrNotMigrated):
		return exitUnreachable, "run `sluice migrate`, or add --migrate"
	case errors.Is(err, sluice.ErrNewerSchema):
		return exitRefused, "install the newer sluice that migrated this database"
	case errors.Is(err, sluice.ErrMoved):
		return exitRefused, "name the store that it was moved to with --db (or SLUICE_DB)"
	case errors.Is(err, sluice.ErrReader):
		return exitRefused, "name a role that may write with --db (or SLUICE_DB)"
	case errors.Is(err, sluice.ErrFollower):
		return exitRefused, "nothing was changed; `sluice doctor` says whether the statement can be run at all"
	case errors.As(err, &server) && server.Code == "42501": // permission denied
		return exitRefused, "run `sluice doctor`: it names the rights that the role lacks, and the statements that grant them"
	case errors.Is(err, move.ErrRefused):
		return exitRefused, "nothing was changed; " + help
	case errors.Is(err, worker.ErrDrainTimeout):
		return exitTimeout, "the jobs were released and will run again; give the drain more time with --grace"
	case errors.Is(err, sluice.ErrUnavailable):
		return exitUnreachable, "check --db (or SLUICE_DB), and that the database or the server is up"
	case errors.Is(err, engine.ErrUnavailable):
		return exitUnreachable, "check --temporal (or SLUICE_TEMPORAL), and that the server is up"
	case errors.Is(err, engine.ErrTarget):
		return exitFailed, "`sluice engine check` says what is missing; the queue's settings name it"
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout, "narrow what you ask for, or give it more time with --timeout"
	}
	if code, todo := adviseOn(command, err); todo != "" {
		return code, todo
	}
	switch {
	case errors.Is(err, sluice.ErrNotFound):
		return exitNotFound, "look at what there is: `sluice queues`, `sluice jobs`"
	case errors.Is(err, sluice.ErrNotAllowed):
		return exitRefused, "look at the job's state: `sluice job ID`"
	case errors.Is(err, sluice.ErrDuplicate):
		return exitRefused, "wait for the job that holds the key, or cancel it"
	case errors.Is(err, sluice.ErrConflict):
		return exitRefused, "look at the settings again and repeat the change"
	case errors.Is(err, sluice.ErrInvalid):
		return exitUsage, "correct it; " + help
	}
	if refused, is := errors.AsType[*remote.Error](err); is && refused.Do != "" {
		return exitFailed, refused.Do
	}
	return exitFailed, help
}

// diagnoseServer is diagnose for what the store behind a server refuses, and for its disk. The text "": it is another error.
func diagnoseServer(err error) (code int, todo string) {
	var unsupported *remote.UnsupportedError
	var refused *remote.Error
	var certificate *remote.CertificateError
	switch {
	case errors.As(err, &unsupported):
		return exitRefused, unsupported.Do
	case errors.As(err, &refused) && refused.Code == "unauthorized":
		return exitRefused, "give the secret of `sluice tokens create` with --token (or SLUICE_TOKEN), or name the files of a certificate in --db (or SLUICE_DB): https://HOST?cert=FILE&key=FILE"
	case errors.As(err, &refused) && (refused.Code == "no_problem" || refused.Code == "no_such_path"):
		return exitUnreachable, "check --db (or SLUICE_DB): it is the address of `sluice serve --listen`, with its --base if it has one"
	case errors.As(err, &refused) && refused.Code == "no_engine":
		return exitNotFound, refused.Do
	case errors.Is(err, remote.ErrRefused) && errors.As(err, &refused):
		return exitRefused, refused.Do
	case errors.As(err, &certificate):
		return exitUnreachable, certificate.Do
	}
	return diagnoseDisk(err)
}

// diagnoseDisk is diagnose for a disk that is full, and for damaged data. The text "": it is another error.
func diagnoseDisk(err error) (code int, todo string) {
	var server *pgconn.PgError
	switch {
	case diskFull(err):
		return exitUnreachable, "make room on the disk of the database; `sluice doctor` says how much is left"
	case strings.Contains(err.Error(), "the file is damaged"):
		return exitUnreachable, "end the programs that use the file, keep a copy of it and of its log, and restore a backup"
	case errors.As(err, &server) && (server.Code == "XX001" || server.Code == "XX002"): // damaged data, or index
		return exitUnreachable, "`sluice doctor --thorough` looks for damaged indexes; else restore a backup"
	}
	return 0, ""
}

// diskFull reports whether the database's disk is full, as the store or PostgreSQL itself says.
func diskFull(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && server.Code == "53100" || errors.Is(err, sluice.ErrDiskFull)
}

// isCobraUsage recognises cobra's errors for a bad command line.
func isCobraUsage(err error) bool {
	text := err.Error()
	for _, prefix := range []string{"unknown command", "unknown flag", "unknown shorthand", "required flag", "invalid argument", "flag needs an argument", "if any flags in the group"} {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

// passwordInURL matches up to the last @ of a word: an unescaped password may contain others.
var passwordInURL = regexp.MustCompile(`((?:://|\bpostgres(?:ql)?:/?)[^:@/\s]*):\S*@`)

// passwordInQuery matches sslpassword too, which opens the key of a certificate.
var passwordInQuery = regexp.MustCompile(`(?i)([?&\s](?:ssl)?password=)[^&\s]*`)

// redact removes passwords from a text that may show a store's address.
func redact(text string) string {
	return passwordInQuery.ReplaceAllString(passwordInURL.ReplaceAllString(text, "$1:•••@"), "$1•••")
}

// redactURL returns a store's address without its password, even if it is no valid URL.
func redactURL(address string) string {
	at := strings.LastIndex(address, "@")
	if at < 0 {
		return redact(address)
	}
	scheme := storeScheme.FindString(address[:at])
	name, _, _ := strings.Cut(address[len(scheme):at], ":")
	return redact(scheme + name + address[at:])
}

// storeScheme matches the start of a store's address, even without a slash.
var storeScheme = regexp.MustCompile(`^(?:[A-Za-z][A-Za-z0-9+.-]*://|(?:postgres|postgresql):/?)`)
