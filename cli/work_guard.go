package cli

import (
	"bufio"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// runVariable marks the processes of a run of a program: all that the program starts inherit it. Its value
// is a path, as a program may be a worker that runs programs itself.
const runVariable = "SLUICE_RUN"

// guardName is the hidden command that a guard runs.
const guardName = "guard-programs"

const (
	guardSays = time.Second      // a guard that takes no line for so long is given up
	endWithin = 10 * time.Second // longer than that only a process lives that the kernel cannot kill
)

// guard is a process that outlives a worker which is killed, to end the programs that ran then. The worker
// tells it by lines which runs begin (+RUN) and end (-RUN).
type guard struct {
	lines *os.File
	ended chan struct{}
}

// startGuard gives nil where a guard cannot be started: the programs then run without.
func startGuard() *guard {
	cmd := guardCommand()
	if cmd == nil {
		return nil
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer func() { _ = reader.Close() }()
	cmd.Stdin = reader
	if err := cmd.Start(); err != nil {
		_ = writer.Close()
		return nil
	}
	g := &guard{lines: writer, ended: make(chan struct{})}
	go func() {
		defer close(g.ended)
		_ = cmd.Wait() // nothing is to be done about a guard that failed; the next program starts another
	}()
	return g
}

// say tells the guard of runs. False: it is not there any more.
func (g *guard) say(lines string) bool {
	if g == nil {
		return false
	}
	_ = g.lines.SetWriteDeadline(time.Now().Add(guardSays)) // a pipe has one
	_, err := io.WriteString(g.lines, lines)
	return err == nil
}

// dismiss ends the guard, and with it the runs that have not ended.
func (g *guard) dismiss() {
	if g == nil {
		return
	}
	_ = g.lines.Close() // it is a pipe
	select {
	case <-g.ended:
	case <-time.After(endWithin + guardSays):
	}
}

// guardRuns is what a guard does: it waits for the worker's end, and kills what is left of its runs.
func guardRuns(worker io.Reader) {
	open := make(map[string]bool)
	lines := bufio.NewScanner(worker)
	for lines.Scan() {
		if run, begins := strings.CutPrefix(lines.Text(), "+"); begins {
			open[run] = true
		} else {
			delete(open, strings.TrimPrefix(run, "-"))
		}
	}
	killRuns(open)
}

// guardProgramsCommand is what the guard of a worker runs.
func (a *app) guardProgramsCommand() *cobra.Command {
	return &cobra.Command{
		Use:               guardName,
		Short:             "End the programs of a worker that was killed, when standard input ends",
		Hidden:            true,
		Args:              arguments(0, 0),
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil }, // it has no use for the settings of others
		RunE: func(*cobra.Command, []string) error {
			// A service manager that stops the worker signals the guard too. The programs may go on for a while then.
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			guardRuns(os.Stdin)
			return nil
		},
	}
}
