package cli_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/cli"
	"github.com/sluice-queue/sluice/worker"
)

func TestEveryErrorHasItsExitCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		code int
	}{
		{errors.New("anything"), 1},
		{&sluice.InvalidError{Field: "key", Rule: "too long"}, 2},
		{sluice.ErrNotFound, 3},
		{sluice.ErrNotAllowed, 4},
		{sluice.ErrDuplicate, 4},
		{sluice.ErrConflict, 4},
		{sluice.ErrNewerSchema, 4},
		{sluice.ErrUnavailable, 5},
		{sluice.ErrNotMigrated, 5},
		{fmt.Errorf("%w: %w", sluice.ErrUnavailable, context.DeadlineExceeded), 5},
		{&pgconn.PgError{Code: "42501", Message: "permission denied for table live"}, 4},
		{&pgconn.PgError{Code: "53100", Message: "could not extend file"}, 5},
		{context.DeadlineExceeded, 124},
		{worker.ErrDrainTimeout, 124},
		{context.Canceled, 130},
	} {
		var said strings.Builder
		if code := cli.Explain("", &said, fmt.Errorf("do it: %w", c.err)); code != c.code {
			t.Errorf("%v: the exit code is %d, want %d", c.err, code, c.code)
		}
		lines := strings.Split(said.String(), "\n")
		why := "  why: do it: "
		if c.code == 130 {
			why = "  why: it was interrupted"
		}
		if len(lines) != 4 || !strings.HasPrefix(lines[0], "error: ") || !strings.HasPrefix(lines[1], why) || len(lines[2]) < len("  do:  x") {
			t.Errorf("%v is told as\n%s", c.err, said.String())
		}
	}
}

// TestAnErrorAdvisesAboutItsCause explains errors that neither the address nor the command line caused.
func TestAnErrorAdvisesAboutItsCause(t *testing.T) {
	t.Parallel()
	const room = "  do:  make room on the disk of the database; `sluice doctor` says how much is left\n"
	for want, err := range map[string]error{
		room:                                 fmt.Errorf("enqueue: %w: free some space", sluice.ErrDiskFull),
		room + " ":                           fmt.Errorf("enqueue: %w: %w", sluice.ErrUnavailable, &pgconn.PgError{Code: "53100", Message: "could not extend file"}),
		"alter role ROLE connection limit N": fmt.Errorf("open: %w: %w", sluice.ErrUnavailable, &pgconn.PgError{Code: "53300", Message: "too many connections for role"}),
		"  do:  run `sluice doctor`: it names the rights": &pgconn.PgError{Code: "42501", Message: "permission denied for table live"},
		"  do:  check --db (or SLUICE_DB)":                fmt.Errorf("enqueue: %w", sluice.ErrUnavailable),
	} {
		var said strings.Builder
		cli.Explain("", &said, err)
		if !strings.Contains(said.String(), strings.TrimSuffix(want, " ")) {
			t.Errorf("%v is told as\n%s", err, said.String())
		}
	}
}

func TestErrorOfManyLinesIsToldOnOne(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	cli.Explain("", &said, errors.New("cannot connect:\n\thost 1: refused\n\thost 2: refused\n\thost 1: refused\n\x1b[31mred"))
	if want := "  why: cannot connect: host 1: refused host 2: refused ·[31mred\n"; !strings.Contains(said.String(), want) {
		t.Errorf("it is told as\n%s", said.String())
	}
	said.Reset()
	cli.Explain("", &said, errors.New(strings.Repeat("long ", 1000)))
	if len(said.String()) > 800 {
		t.Errorf("it is told in %d bytes", len(said.String()))
	}
}

func TestFiguresAsPeopleReadThem(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		cli.Money(0): "0.00 EUR", cli.Money(123456): "1 234.56 EUR", cli.Money(-5): "-0.05 EUR",
		cli.CutMiddle("short", 9): "short", cli.CutMiddle("0123456789", 5): "01…89", cli.CutMiddle("éàüöß", 4): "é…öß",
	} {
		if got != want {
			t.Errorf("it is written %q, want %q", got, want)
		}
	}
}

func TestTableFitsTheTerminal(t *testing.T) {
	t.Parallel()
	const id = "01a1fb72-1dea-7abc-8fc6-99e4817522bb"
	titles := []string{"ID", "QUEUE", "TENANT", "STATE", "PRIO", "DUE", "ATTEMPTS", "HOLDER", "ERROR"}
	for width, want := range map[int]string{
		0:   "ID QUEUE TENANT STATE PRIO DUE ATTEMPTS HOLDER ERROR",
		200: "ID QUEUE STATE PRIO DUE ATTEMPTS HOLDER ERROR",
		100: "ID QUEUE STATE PRIO DUE ATTEMPTS ERROR",
		80:  "ID QUEUE STATE DUE ERROR",
		40:  "ID QUEUE STATE ERROR",
	} {
		row := []string{id, "payments", "-", "scheduled", "5", "in 59m59s", "2", "host:4711:3bc6bdb1", strings.Repeat("no answer ", 20)}
		kept, cells := cli.FitTable(titles, row, width)
		if got := strings.Join(kept, " "); got != want {
			t.Errorf("%d columns show %s, want %s", width, got, want)
		}
		if cells[0] != id {
			t.Errorf("%d columns cut the id to %s", width, cells[0])
		}
		if wide := len([]rune(strings.Join(cells, "  "))); width >= 80 && wide > width {
			t.Errorf("%d columns show a row of %d: %q", width, wide, cells)
		}
	}
}
