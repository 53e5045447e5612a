package cli

import (
	"bufio"
	"io"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// runVariable marks the processes of a program's run; its children inherit it. Its value is a path, because a program
// may be a worker that runs programs itself.
const runVariable = "SLUICE_RUN"

// guardName is the hidden command that a guard runs.
const guardName = "guard-programs"

const (
	guardSays = time.Second      // a guard that takes no line for so long is given up
	endWithin = 10 * time.Second // only a process that the kernel cannot kill lives longer
)

// guard is a process that ends the programs of a worker that was killed, or stopped so long that others may get its
// jobs. The worker writes a line for each begin (+RUN, and after how many silent milliseconds to end the run) and end
// (-RUN). Empty lines are signs of life.
type guard struct {
	lines *os.File
	ended chan struct{}
}

// startGuard returns nil if a guard cannot start: programs then run without.
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
		_ = cmd.Wait() // the next program replaces a failed guard
	}()
	return g
}

// say sends lines to the guard. False: the guard is gone.
func (g *guard) say(lines string) bool {
	if g == nil {
		return false
	}
	_ = g.lines.SetWriteDeadline(time.Now().Add(guardSays)) // a pipe has one
	_, err := io.WriteString(g.lines, lines)
	return err == nil
}

// dismiss ends the guard, and with it any unfinished runs.
func (g *guard) dismiss() {
	if g == nil {
		return
	}
	_ = g.lines.Close() // a pipe
	select {
	case <-g.ended:
	case <-time.After(endWithin + guardSays):
	}
}

// guardRuns runs the guard. When the worker ends, guardRuns kills what is left of its runs. If the worker is silent too
// long, its runs are killed earlier.
func guardRuns(worker io.Reader) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for read := bufio.NewScanner(worker); read.Scan(); {
			lines <- read.Text()
		}
	}()
	open := make(patiences)
	interval := open.interval()
	look := time.NewTicker(interval)
	defer look.Stop()
	// Count looks, not time: a guard that is stopped, or gets no processor, has unread lines.
	var silent time.Duration
	for {
		select {
		case line, alive := <-lines:
			if !alive {
				killRuns(open.over(math.MaxInt64))
				return
			}
			silent = 0
			if open.hear(line) {
				interval = open.interval()
				look.Reset(interval)
			}
		case <-look.C:
			silent += interval
			killRuns(open.over(silent))
		}
	}
}

// patiences maps each run to how long its worker may be silent.
type patiences map[string]time.Duration

// hear handles a line, and reports whether a run began or ended.
func (p patiences) hear(line string) bool {
	run, milliseconds, begins := strings.Cut(strings.TrimPrefix(line, "+"), " ")
	if begins {
		number, err := strconv.Atoi(milliseconds)
		if err != nil {
			return false
		}
		p[run] = time.Duration(number) * time.Millisecond
		return true
	}
	delete(p, strings.TrimPrefix(run, "-"))
	return line != ""
}

// over removes and returns the runs whose worker was silent too long.
func (p patiences) over(silent time.Duration) map[string]bool {
	over := make(map[string]bool)
	for run, patience := range p {
		if silent > patience {
			over[run] = true
			delete(p, run)
		}
	}
	return over
}

// interval is how often a worker gives a sign of life, and its guard looks.
func (p patiences) interval() time.Duration {
	interval := time.Second
	for _, patience := range p {
		interval = min(interval, patience/signsOfLife)
	}
	return max(interval, 10*time.Millisecond)
}

// signsOfLife is how many a worker gives in its allowed silence.
const signsOfLife = 8

// patienceOf is how long a program's worker may be silent. A running worker renews with half of each lease left, see
// package worker. So its programs end while it still owns their jobs.
func patienceOf(lease time.Duration) time.Duration { return lease * 2 / 5 }

// guardProgramsCommand runs in the guard of a worker.
func (a *app) guardProgramsCommand() *cobra.Command {
	return &cobra.Command{
		Use:               guardName,
		Short:             "End a worker's programs when standard input ends or is silent",
		Hidden:            true,
		Args:              arguments(0, 0),
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil }, // needs no settings
		RunE: func(*cobra.Command, []string) error {
			// A service manager that stops the worker also signals the guard, although programs may go on for a while.
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			guardRuns(os.Stdin)
			return nil
		},
	}
}
