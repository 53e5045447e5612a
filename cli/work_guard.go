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

// runVariable marks the processes of a run of a program: all that the program starts inherit it. Its value
// is a path, as a program may be a worker that runs programs itself.
const runVariable = "SLUICE_RUN"

// guardName is the hidden command that a guard runs.
const guardName = "guard-programs"

const (
	guardSays = time.Second      // a guard that takes no line for so long is given up
	endWithin = 10 * time.Second // longer than that only a process lives that the kernel cannot kill
)

// guard is a process that ends the programs of a worker which is killed, or which is stopped for so long that others may get its
// jobs. The worker tells it by lines which runs begin (+RUN, and after how many milliseconds without a line the run is to be
// ended) and end (-RUN), and by empty lines that it is alive.
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

// guardRuns is what a guard does: it waits for the worker's end, and kills what is left of its runs. It kills those of a worker
// that is silent for too long before.
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
	// Looks are counted, not time: a guard that is stopped, or that gets no processor, has lines that it has not read.
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

// patiences says of each run for how long its worker may be silent.
type patiences map[string]time.Duration

// hear takes a line in, and reports whether a run began or ended.
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

// over takes out the runs whose worker was silent for too long.
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

// interval is how often a worker says that it is alive, and how often its guard looks.
func (p patiences) interval() time.Duration {
	interval := time.Second
	for _, patience := range p {
		interval = min(interval, patience/signsOfLife)
	}
	return max(interval, 10*time.Millisecond)
}

// signsOfLife is how many a worker gives in the time for which it may be silent.
const signsOfLife = 8

// patienceOf is for how long the worker of a program may be silent. A worker that runs keeps half of each lease before it, see
// the renewing of package worker. Its programs end while their jobs are still its own.
func patienceOf(lease time.Duration) time.Duration { return lease * 2 / 5 }

// guardProgramsCommand is what the guard of a worker runs.
func (a *app) guardProgramsCommand() *cobra.Command {
	return &cobra.Command{
		Use:               guardName,
		Short:             "End the programs of a worker that was killed or stopped, when standard input ends or is silent",
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
